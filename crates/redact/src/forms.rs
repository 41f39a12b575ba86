//! Finds secret tokens of a known form in recorded command lines: most services give their tokens a fixed prefix.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::looks;
use crate::matching::compiled;

/// Texts by which a word of a command line is recognized quickly as one that may contain a token of
/// a known form or a private key. The case of letters does not matter.
#[rustfmt::skip]
pub const HINTS: [&str; 195] = [
    "sctapi", "bearer ", "@tcp(", "@unix(", "@udp(", "@/", "nats://", "infura.io/", "alchemy.com/", "quiknode.pro/", "ankr.com/", "day.app/", "/trigger/",
    "-us1", "-us2", ":aa", "eaaa", "rtmp://", "rtmps://", "whsec_", "swmtkn-", "fm1", "fm2_", "fo1_", "ops_ey", "a3-", "tk_", "webhook.office", "outlook.office",
    "hooks.zapier", "sqp_", "squ_", "sqa_", "ctp_", "cfpat-", "dp.st.", "dp.ct.", "dp.sa.", "nrrl-", "phc_", "phx_",
    "ltai", "r8_", "xai-", "nvapi-", "lsv2_", "pcsk_", "ccipat_", "bkua_", "tfp_", "clojars_", "duffel_",
    "shippo_", "flwseck", "oy2", "eaac", "eaam", "dt0c01.", "dt0s0", "ezak", "eztk", "fio-u-", "pnu_", "sgp_", 
    "_mmk", "tk-us-", "api-", "p8e-", "1//0", "amzn1.", "amzn.mws", "/hooks/", "/t/", "codecov.io/bash",
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glft-", "glrt-",
    "glptt-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-", "gr1348941", "xox",
    "xapp-", "hooks.slack", "/webhooks/", "api.telegram", "sk-", "sk_", "rk_", "npm_", "pypi-",
    "dckr_", "hf_", "api_org_", "aiza", "gocspx-", "ya29.", "eyj", "age-", "-----begin", "hvs.",
    "hvb.", "hvr.", "sg.", "xkeysib-", "shpat_", "shpca_", "shppa_", "shpss_", "dop_v1_",
    "doo_v1_", "dor_v1_", "glsa_", "glc_", "figd_", "lin_api_", "pmak-", "dapi", "pul-",
    "rubygems_", "nrak-", "nrii-", "tskey-", "sntry", "dp.pt.", "sq0", "gsk_", "atatt3", "akcp",
    "cmvmd", "q~", "sbp_", "nfp_", "pscale_", "rdme_", "ntn_", "pplx-", "atlasv1", "sha256~",
    "sb_secret_", "cciprj_", "vcp_", "vci_", "vcr_", "vca_", "vck_", "cfut_", "cfat_", "cfk_", "v1.0-", "k.eyj", "tvly-", "tgp_v",
    "csk-", "rnd_", "asia", "jina_", "e2b_", "rpa_", "atbb", "atctt3", "mlsn.", "access-sandbox-", "access-development-",
    "access-production-", "pat-na", "pat-eu", "hrku-", "ico-", "aio_", "apify_api_", "napi_", "ddp_", "xsmtpsib-", "aqvn",
    "absk", "bedrock-api-key-", "dnkey-", "sm_pat_", "sm_aat_", "atta", "kgat_", "hcaik_", "bkaj_",
];

/// Matches secret tokens by their prefixes, lengths and alphabets, as the services document them
/// and as other secret scanners know them.
static FORMS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u)\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"|\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"|\bgl(?:pat|dt|ft|rt|ptt|cbt|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{16,}",
        r"|\bGR1348941[A-Za-z0-9_-]{16,}",
        r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"|\bxapp-[A-Za-z0-9-]{16,}",
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/+]{16,})",
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
        r"|\beyJ[A-Za-z0-9_-]{8,}\.(?:eyJ[A-Za-z0-9_-]+|[A-Za-z0-9_-]{20,})\.[A-Za-z0-9_-]*",
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
        r"|hooks\.zapier\.com/hooks/catch/([A-Za-z0-9/]{8,})",
        r"|(?:webhook\.office|outlook\.office(?:365)?)\.com/webhook(?:b2)?/([A-Za-z0-9@/-]{36,})",
        r"|/hooks/([A-Za-z0-9]{26})\b",
        r"|\bwhsec_[A-Za-z0-9+/=_-]{16,}",
        r"|\bSWMTKN-1-[a-z0-9-]{50,}",
        r"|\b(?:FlyV1 )?fm[12][ar]?_[A-Za-z0-9+/=_,-]{20,}|\bfo1_[A-Za-z0-9_-]{30,}",
        r"|\bops_eyJ[A-Za-z0-9+/=_-]{40,}",
        r"|\bA3-[A-Z0-9]{6}-[A-Z0-9-]{20,}|\bA3-[A-Za-z0-9]{6}-[A-Za-z0-9-]{20,}",
        r"|\btk_[a-z0-9]{29}|\btk_[A-Za-z0-9]{29}",
        r"|\bs(?:qp|qu|qa)_[a-f0-9]{40}",
        r"|\bctp_[A-Za-z0-9_-]{30,}|\bCFPAT-[A-Za-z0-9_-]{30,}",
        r"|\bdp\.(?:st|ct|sa)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}",
        r"|\bNRRL-[a-f0-9]{40}|\bph[cx]_[A-Za-z0-9]{30,}",
        r"|\bLTAI[A-Za-z0-9]{16,}|\br8_[A-Za-z0-9]{37}|\bxai-[A-Za-z0-9]{40,}|\bnvapi-[A-Za-z0-9_-]{40,}",
        r"|\blsv2_(?:pt|sk)_[a-f0-9_]{32,}|\bpcsk_[A-Za-z0-9_]{40,}|\bCCIPAT_[A-Za-z0-9_]{40,}",
        r"|\bbkua_[a-z0-9]{40}|\btfp_[A-Za-z0-9_.=-]{40,}|\bCLOJARS_[a-z0-9]{60}",
        r"|\bduffel_(?:test|live)_[A-Za-z0-9_=-]{40,}|\bshippo_(?:test|live)_[a-f0-9]{40}",
        r"|\bFLWSECK(?:_TEST)?-[A-Za-z0-9-]{12,}|\boy2[a-z0-9]{43}",
        r"|\bEAA[MC][A-Za-z0-9]{80,}|\bdt0[cs]0[0-9]\.[A-Z0-9]{24}\.[A-Z0-9]{64}|\bEZ[AT]K[A-Za-z0-9]{54}",
        r"|\bfio-u-[A-Za-z0-9_=-]{60,}|\bpnu_[A-Za-z0-9]{36}|\bsgp_[a-fA-F0-9_]{40,}",
        r"|\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk|\btk-us-[A-Za-z0-9_-]{40,}|\bAPI-[A-Z0-9]{26,}",
        r"|\bp8e-[A-Za-z0-9]{32}|\b1//0[A-Za-z0-9_-]{30,}|\bamzn1\.oa2-cs\.v1\.[a-f0-9]{64}",
        r"|\bamzn\.mws\.[a-f0-9-]{36}",
        // The secret is the key of a stream that is broadcast.
        r"|\brtmps?://[a-z0-9.-]*(?:twitch\.tv|youtube\.com|facebook\.com)(?::[0-9]+)?/(?:app|live2|rtmp)/([^\s/?]{8,})",
        // The secret is the token of a channel of Anaconda. Topics of forums have similar addresses, but with words in
        // them.
        r"|://[^\s/]+/t/((?:[a-z]{2}-)?[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}|[A-Za-z0-9_]{24,})\b",
        // The secret is X in `bash <(curl https://codecov.io/bash) -t X`, or in the same script called through a pipe.
        r#"|codecov\.io/bash[^;&\n]*?\s-t\s*["']?([A-Za-z0-9-]{20,})"#,
        // Many of the following tokens have no word in `HINTS`; `may_be_bare` and `may_be_token` recognize them.
        r"|\bSK[a-f0-9]{32}\b|\b[a-f0-9]{32}-us[0-9]{1,2}\b|\bkey-[a-f0-9]{32}\b",
        r"|\b[0-9]{8,10}:[A-Za-z0-9_-]{35}\b|\bEAAA[A-Za-z0-9_-]{50,}",
        r"|\b[A-Za-z0-9_-]{24,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}\b|\bs\.[A-Za-z0-9]{24}\b",
        r"|\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b|\bsb_secret_[A-Za-z0-9_-]{20,}|\bCCIPRJ_[A-Za-z0-9_]{40,}",
        r"|\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b|\bsl\.(?:u\.)?[A-Za-z0-9_-]{60,}|\bcio[A-Za-z0-9]{32}\b",
        r"|\bvc[pirak]_[A-Za-z0-9]{20,}|\bcf(?:ut|at|k)_[A-Za-z0-9_-]{30,}|\bv1\.0-[a-f0-9]{24}-[a-f0-9]{146}",
        r"|\b[pst]k\.eyJ[A-Za-z0-9_-]{30,}\.[A-Za-z0-9_-]{20,}|\bsecret_[A-Za-z0-9]{43}\b",
        r"|\btvly-(?:dev-|prod-)?[A-Za-z0-9-]{20,}|\btgp_v[0-9]_[A-Za-z0-9_-]{30,}|\bfw_[A-Za-z0-9]{22,24}\b",
        r"|\bcsk-[A-Za-z0-9]{40,}|\brnd_[A-Za-z0-9]{28,}|\bjina_[A-Za-z0-9_-]{50,}|\brpa_[A-Za-z0-9]{32,}",
        r"|\bfc-[a-f0-9]{32}\b|\be2b_[a-f0-9]{40}\b|\bcu_[a-f0-9]{32}\b|\bATBB[A-Za-z0-9]{32}\b|\bATCTT3[A-Za-z0-9_=-]{32,}",
        r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}:([A-Za-z0-9/+]{40})|\bK00[0-9][A-Za-z0-9/+]{27}\b",
        r"|\bmlsn\.[a-f0-9]{64}\b|\bxsmtpsib-[a-f0-9]{64}-[A-Za-z0-9]+|\bHRKU-[A-Za-z0-9_-]{40,}",
        r"|\b(?:access-(?:sandbox|development|production)|pat-(?:na|eu)[0-9])-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}",
        r"|\bico-[A-Za-z0-9]{32}\b|\baio_[A-Za-z0-9]{28}\b|\bapify_api_[A-Za-z0-9]{30,}|\bnapi_[A-Za-z0-9]{50,}",
        r"|\bddp_[A-Za-z0-9]{36}\b|\bAQVN[A-Za-z0-9_-]{35,}|\bABSK[A-Za-z0-9+/]{100,}=*|\bbedrock-api-key-[A-Za-z0-9+/=]{30,}",
        r"|\bdnkey-[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}|\bsm_[ap]+t_[A-Za-z0-9]{16,}|\bATTA[a-f0-9]{60,}",
        r"|\bKGAT_[a-f0-9]{32}|\bhcaik_[A-Za-z0-9]{50,}|\bbkaj_[a-z0-9]{40}|\bS[ACNOU]A?[A-Z2-7]{55,56}\b",
        r"|\b[a-f0-9]{24}:[a-f0-9]{64}\b|\b(?:sdk|api)-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}\b",
        r"|(?:sctapi\.ftqq\.com|api\.day\.app)/([A-Za-z0-9]{16,})|/trigger/([a-f0-9-]{36})/call\b",
        r"|\bnats://([^\s:@/]{6,})@",
        // The secret is the key in the address of a service for a blockchain.
        r"|(?:infura\.io/(?:ws/)?v3|alchemy\.com/v2|quiknode\.pro|ankr\.com/[a-z0-9_]+)/([A-Za-z0-9_-]{20,})",
        r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*)",
    ))
});

/// Matches secrets that stand beside certain words: `Bearer X`, or Go's data source `user:X@tcp(host)/database`. The
/// search takes so long that it is only done in texts with such words.
static BESIDE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u)\b(?i:bearer)\s+([A-Za-z0-9._~+/=-]{20,})",
        r"|\b[A-Za-z0-9_.+-]{1,64}:([^\s@:/]+)@(?:(?:tcp|unix|udp)\(|/[a-z0-9_]+\?)",
    ))
});

/// Whether a text contains a word that shows that the search with [`BESIDE`] may find a secret.
fn may_be_beside(text: &[u8]) -> bool {
    let has = |word: &[u8]| {
        text.windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word))
    };
    text.contains(&b' ') && has(b"bearer ")
        || text.contains(&b'@') && (has(b"@tcp(") || has(b"@unix(") || has(b"@/"))
}

/// Whether an argument may be the token of a Discord bot: it has the right length, and three parts with dots between
/// them.
pub fn may_be_discord(arg: &[u8]) -> bool {
    (59..=75).contains(&arg.len()) && arg.iter().filter(|b| **b == b'.').count() == 2
}

/// Whether a text may contain a secret token whose form has no fixed word that [`HINTS`] could list.
pub fn may_be_bare(text: &[u8]) -> bool {
    let parts = text.split(|b| !(b.is_ascii_alphanumeric() || b"_.:-".contains(b)));
    parts.into_iter().any(|part| {
        let digits = || part.iter().filter(|b| b.is_ascii_digit()).count() >= 3;
        (26..=100).contains(&part.len()) && digits()
    })
}

/// The prefixes of those secret tokens whose prefix is not followed by `_`, `-`, `.` or `:`.
const BEGINNINGS: [&[u8]; 8] = [b"cio", b"SK", b"K00", b"SA", b"SC", b"SN", b"SO", b"SU"];

/// The largest length in bytes of the prefix of a secret token.
const PREFIX: usize = 20;

/// Whether an argument of 24 to 300 bytes as a whole may be a secret token: a prefix that ends with `_`, `-`, `.` or
/// `:`, or one of [`BEGINNINGS`], and then letters, at least three digits and a few marks. The check takes bounded
/// time.
pub fn may_be_token(arg: &[u8]) -> bool {
    if !(24..=300).contains(&arg.len()) || !arg.first().is_some_and(u8::is_ascii_alphanumeric) {
        return false;
    }
    let prefix = arg.get(..PREFIX).unwrap_or_default();
    let begins = match prefix.iter().find(|b| !b.is_ascii_alphanumeric()) {
        Some(mark) => b"_-.:".contains(mark),
        None => BEGINNINGS.iter().any(|start| arg.starts_with(start)) || arg.get(24) == Some(&b':'),
    };
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_.:+/=-".contains(b);
    begins && arg.iter().all(plain) && arg.iter().filter(|b| b.is_ascii_digit()).count() >= 3
}

/// Whether an argument is a secret token of a service that [`FORMS`] does not list. Most services
/// separate a prefix of small letters from the random part by `_` or `-`.
fn is_prefixed_token(arg: &[u8]) -> bool {
    let mark = |b: &u8| b"_-".contains(b);
    let Some(at) = arg.iter().rposition(mark) else {
        return false;
    };
    let (prefix, tail) = (arg.get(..at), arg.get(at + 1..));
    let small = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || mark(b);
    let prefix = prefix
        .is_some_and(|prefix| (2..=PREFIX).contains(&prefix.len()) && prefix.iter().all(small));
    prefix && tail.is_some_and(looks::is_random)
}

/// The byte ranges of the secret tokens in a text. In the address of a webhook, only the secret part of the address is
/// such a range.
pub fn find(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let secret = |found: regex::bytes::Captures<'_>| {
        let groups = found.iter().skip(1).flatten().next();
        let part = groups.or_else(|| found.get(0))?;
        // A name such as `sk-learn-model-2024` begins like a token with the prefix `sk-`, but has no long random part.
        let keyed = matches!(part.as_bytes(), [b's' | b'r', b'k', b'-' | b'_', ..]);
        (!keyed || has_long_part(part.as_bytes())).then(|| part.range())
    };
    let beside = may_be_beside(text).then(|| BESIDE.captures_iter(text).filter_map(secret));
    let known = FORMS.captures_iter(text).filter_map(secret);
    known
        .chain(beside.into_iter().flatten())
        .chain(is_prefixed_token(text).then_some(0..text.len()))
}

/// Whether a token has a part that looks random. Its parts are separated by `_` and `-`. A part of at least five
/// characters looks random if it has 16 characters or more, or if it is neither a word in small letters nor a number.
fn has_long_part(token: &[u8]) -> bool {
    let is_word = |part: &[u8]| {
        part.iter().all(u8::is_ascii_lowercase) || part.iter().all(u8::is_ascii_digit)
    };
    let mut parts = token.split(|b| b"_-".contains(b));
    parts.any(|part| part.len() > 4 && (part.len() >= 16 || !is_word(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_compiles() {
        assert_eq!(find(b"x").count(), 0);
    }
}
