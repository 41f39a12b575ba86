//! Divides the text of a shell's script into words, to find the names of files in it.
//!
//! Unlike [`Outline`](crate::outline::Outline), the functions here know nothing of the shell's grammar and read a text
//! in one pass without copying it, so that they can be applied to every command line of a recording. They also find
//! names inside of quotes, in scripts that a script runs. (Crates such as `shell-words` and `shlex` divide one command
//! into arguments: for them, `;` and `>` are letters, and an open quote is an error.)

/// The bytes that end a word of a script, beside blanks: they separate commands.
const SEPARATORS: &[u8] = b";&|()";
const REDIRECTIONS: &[u8] = b"<>";
const QUOTES: &[u8] = b"'\"";

/// Whether the argument that follows this option of a shell is a script; `-c` and `-ec` are such options.
pub fn is_script_option(option: &[u8]) -> bool {
    option.starts_with(b"-") && !option.starts_with(b"--") && option.ends_with(b"c")
}

/// The words of a script's commands, without quotes around them. Redirections remain in their words: `>x`, `2>x`.
pub fn command_words(script: &[u8]) -> impl Iterator<Item = &[u8]> {
    words(script, &[SEPARATORS]).map(without_quotes)
}

/// The parts of a script that can be names of files. They also end at quotes, redirections and equals signs.
pub fn names(script: &[u8]) -> impl Iterator<Item = &[u8]> {
    words(script, &[SEPARATORS, REDIRECTIONS, QUOTES, b"="])
}

/// The names of the files into which a script redirects outputs. A file descriptor (`>&2`) gives an empty name.
pub fn redirection_targets(script: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = script.split(|byte| *byte == b'>').skip(1);
    parts.filter_map(|part| {
        let target = part.trim_ascii_start();
        let mut words = target.split(|byte| is_end(*byte, &[SEPARATORS, REDIRECTIONS]));
        let word = words.next().filter(|_| !target.is_empty())?;
        let is_quote = |byte: &u8| QUOTES.contains(byte);
        let inside = match word.split_first() {
            Some((first, inside)) if is_quote(first) => inside,
            _ => word,
        };
        inside.split(is_quote).next()
    })
}

fn words<'a>(script: &'a [u8], ends: &'static [&'static [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let words = script.split(|byte| is_end(*byte, ends));
    words.filter(|word| !word.is_empty())
}

fn is_end(byte: u8, ends: &[&[u8]]) -> bool {
    byte.is_ascii_whitespace() || ends.iter().any(|bytes| bytes.contains(&byte))
}

fn without_quotes(word: &[u8]) -> &[u8] {
    let is_inside = |byte: &u8| !QUOTES.contains(byte);
    let begin = word.iter().position(is_inside).unwrap_or(word.len());
    let end = word
        .iter()
        .rposition(is_inside)
        .map_or(begin, |last| last + 1);
    word.get(begin..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &[u8] = b"cc -o 'a.o' x=\"b c\";(gen 2>log >>out/d) | tee > \"e f\">&2";

    fn texts<'a>(words: impl Iterator<Item = &'a [u8]>) -> String {
        let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
        words.join(" ~ ")
    }

    #[test]
    fn words_of_commands_keep_redirections() {
        assert_eq!(
            texts(command_words(SCRIPT)),
            "cc ~ -o ~ a.o ~ x=\"b ~ c ~ gen ~ 2>log ~ >>out/d ~ tee ~ > ~ e ~ f\"> ~ 2"
        );
    }

    #[test]
    fn names_end_at_quotes_redirections_and_equals_signs() {
        assert_eq!(
            texts(names(SCRIPT)),
            "cc ~ -o ~ a.o ~ x ~ b ~ c ~ gen ~ 2 ~ log ~ out/d ~ tee ~ e ~ f ~ 2"
        );
    }

    #[test]
    fn targets_are_the_words_after_redirections() {
        assert_eq!(texts(redirection_targets(SCRIPT)), "log ~ out/d ~ e ~ ");
        assert_eq!(texts(redirection_targets(b"a >'b'c> ")), "b");
    }
}
