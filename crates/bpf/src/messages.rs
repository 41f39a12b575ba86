//! Keeps the messages of libbpf and of the kernel's verifier.

use std::sync::Mutex;

use libbpf_rs::PrintLevel;

/// The last messages of libbpf and of the kernel's verifier, which [`log`] returns.
static LOG: Mutex<String> = Mutex::new(String::new());

fn keep_log(_level: PrintLevel, text: String) {
    keep(&text);
}

/// Adds a message to the messages that [`log`] returns.
pub(crate) fn keep(text: &str) {
    if let Ok(mut log) = LOG.lock() {
        log.push_str(text);
        // The end of the text is kept, because a verifier log says at its end why a program was refused.
        if log.len() > 8192 {
            let cut = log.len() - 4096;
            let at = log
                .char_indices()
                .map(|(i, _)| i)
                .find(|i| *i >= cut)
                .unwrap_or(0);
            log.drain(..at);
        }
    }
}

/// Makes libbpf keep its warnings for [`log`] from now on, instead of printing them to standard error.
pub fn keep_messages() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep_log)));
}

/// The last warnings of libbpf and messages of the kernel's verifier in this process, at most 8 KiB.
pub fn log() -> String {
    LOG.lock().map(|log| log.clone()).unwrap_or_default()
}
