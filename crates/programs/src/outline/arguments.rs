//! Compares the arguments of a recorded process with the words of a command in a shell script, to
//! find out whether the command started the process.

use super::words::Word;

/// The largest number of arguments of a process that are compared with the words of a command in a script. This bounds
/// the time of the comparison. If there are more words or arguments, only the first of each is compared.
pub(super) const WORDS: usize = 256;

/// Whether the words of a command in a script can expand to these arguments of a process. The arguments may begin with
/// the name of an interpreter and its option, which the kernel adds for a script with `#!`. If `is_cut` is set, the
/// last argument may be incomplete, and further arguments may be missing.
pub(super) fn are(words: &[Word], args: &[&[u8]], is_cut: bool) -> bool {
    if can_be(words, args, is_cut) {
        return true;
    }
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    let base = |path: &[u8]| {
        let name = path.rsplit(|byte| *byte == b'/').next();
        name.unwrap_or_default().to_vec()
    };
    // For a script, the kernel puts the words of its `#!` line first, such as `/usr/bin/env python3`.
    (1..=3).any(|skipped| {
        let Some((script, after)) = args.get(skipped..).and_then(<[&[u8]]>::split_first) else {
            return false;
        };
        let is_script = match first.literal() {
            Some(name) => base(name) == base(script),
            None => first.is_many() || first.fits(script),
        };
        script.contains(&b'/') && is_script && can_be(rest, after, is_cut)
    })
}

/// Like [`are`], but without an interpreter before the script.
fn can_be(words: &[Word], args: &[&[u8]], is_cut: bool) -> bool {
    if words.len() > WORDS || args.len() > WORDS {
        let first = words.first();
        return first
            .is_some_and(|word| word.is_many() || args.first().is_some_and(|arg| word.fits(arg)));
    }
    // If a later word does not match, the comparison returns to the last word that may stand for any number of
    // arguments. `retry` is the place after that word, and the argument with which the comparison then continues.
    let mut retry: Option<(usize, usize)> = None;
    let (mut word, mut arg) = (0, 0);
    loop {
        match (words.get(word), args.get(arg)) {
            (Some(many), _) if many.is_many() => {
                word += 1;
                retry = Some((word, arg));
                continue;
            }
            (None, None) => return true,
            (Some(_), None) if is_cut => return true,
            (Some(one), Some(text)) if one.fits(text) || is_cut && arg + 1 == args.len() => {
                word += 1;
                arg += 1;
                continue;
            }
            _ => {}
        }
        match &mut retry {
            Some((after, from)) if *from < args.len() => {
                *from += 1;
                (word, arg) = (*after, *from);
            }
            _ => return false,
        }
    }
}
