//! Tokens of a known form: most services give theirs a prefix.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::rules::compiled;

/// A word with one of these, in upper or lower case, may hold such a token, or a private key.
#[rustfmt::skip]
pub const HINTS: [&str; 76] = [
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glft-", "glrt-",
    "glptt-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-", "gr1348941", "xox",
    "xapp-", "hooks.slack", "/webhooks/", "api.telegram", "sk-", "sk_", "rk_", "npm_", "pypi-",
    "dckr_", "hf_", "api_org_", "aiza", "gocspx-", "ya29.", "eyj", "age-", "-----begin", "hvs.",
    "hvb.", "hvr.", "sg.", "xkeysib-", "shpat_", "shpca_", "shppa_", "shpss_", "dop_v1_",
    "doo_v1_", "dor_v1_", "glsa_", "glc_", "figd_", "lin_api_", "pmak-", "dapi", "pul-",
    "rubygems_", "nrak-", "nrii-", "tskey-", "sntry", "dp.pt.", "sq0", "gsk_", "atatt3", "akcp",
    "cmvmd", "q~", "sbp_", "nfp_", "pscale_", "rdme_", "ntn_", "pplx-", "atlasv1", "sha256~",
];

/// Prefixes, lengths and alphabets as the services document them, and as scanners of
/// repositories know them.
static FORMS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u)\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"|\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"|\bgl(?:pat|dt|ft|rt|ptt|cbt|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{16,}",
        r"|\bGR1348941[A-Za-z0-9_-]{16,}",
        r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"|\bxapp-[A-Za-z0-9-]{16,}",
        r"|hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/+]{16,})",
        r"|discord(?:app)?\.com/api/webhooks/[0-9]+/([A-Za-z0-9_-]{16,})",
        r"|api\.telegram\.org/bot([0-9]+:[A-Za-z0-9_-]{16,})",
        r"|\b[sr]k[-_][A-Za-z0-9_-]{20,}",
        r"|\bnpm_[A-Za-z0-9]{30,}",
        r"|\bpypi-[A-Za-z0-9_-]{30,}",
        r"|\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}",
        r"|\b(?:hf|api_org)_[A-Za-z0-9]{20,}",
        r"|\bAIza[A-Za-z0-9_-]{30,}",
        r"|\bGOCSPX-[A-Za-z0-9_-]{16,}",
        r"|\bya29\.[A-Za-z0-9_-]{16,}",
        r"|\bAGE-SECRET-KEY-[A-Z0-9]+",
        r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",
        r"|\bhv[sbr]\.[A-Za-z0-9_-]{20,}",
        r"|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        r"|\bxkeysib-[a-f0-9]{32,}-[A-Za-z0-9]+",
        r"|\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}",
        r"|\bdo[por]_v1_[a-f0-9]{32,}",
        r"|\bgl(?:sa|c)_[A-Za-z0-9+/_=]{24,}",
        r"|\b(?:figd|lin_api|gsk|sbp|nfp|rdme|ntn)_[A-Za-z0-9_-]{20,}",
        r"|\bpscale_(?:tkn|oauth|pw)_[A-Za-z0-9=._-]{20,}",
        r"|\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}",
        r"|\bdapi[a-f0-9]{32}",
        r"|\bpul-[a-f0-9]{40}",
        r"|\brubygems_[a-f0-9]{48}",
        r"|\bNR(?:AK|II)-[A-Za-z0-9-]{20,}",
        r"|\btskey-[A-Za-z0-9-]{16,}",
        r"|\bsntry[su]_[A-Za-z0-9+/=_]{32,}",
        r"|\bdp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{32,}",
        r"|\bsq0(?:csp|atp)-[A-Za-z0-9_-]{20,}",
        r"|\bATATT3[A-Za-z0-9_=-]{32,}",
        r"|\bAKCp[A-Za-z0-9]{40,}|\bcmVmd[A-Za-z0-9]{59}",
        r"|\bpplx-[A-Za-z0-9]{40,}",
        r"|\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}",
        r"|\bsha256~[A-Za-z0-9_-]{43}",
        r"|[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
        r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*)",
    ))
});

/// The tokens in a text; of a webhook's address, its secret part.
pub fn find(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let secret = |found: regex::bytes::Captures<'_>| {
        let groups = found.iter().skip(1).flatten().next();
        groups.or_else(|| found.get(0)).map(|m| m.range())
    };
    FORMS.captures_iter(text).filter_map(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_compiles() {
        assert_eq!(find(b"x").count(), 0);
    }
}
