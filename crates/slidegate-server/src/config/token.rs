//! The token that callers must show, from a file of its own: the configuration may be read by many.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::service::Secret;
use crate::text::shown;

const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 4_096;

/// Reads a token; a line break at its end does not count. What the file holds is never repeated.
pub(super) fn read(path: &Path) -> Result<Secret, String> {
    let name = shown(&path.display().to_string());
    let mut text = String::new();
    let most = TOKEN_BYTES_MAX as u64 + 3;
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    read.map_err(|error| format!("`{name}` cannot be read: {error}; check the path and who may read it"))?;
    let token = text.strip_suffix('\n').unwrap_or(&text);
    let token = token.strip_suffix('\r').unwrap_or(token);
    if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
        let range = format!("{TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes");
        return Err(format!(
            "`{name}` holds no token of {range}; write one, for example by `openssl rand -hex 32`"
        ));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "`{name}` holds more than one word, or one that is not ASCII; write one line of ASCII"
        ));
    }
    Ok(Secret(token.to_owned()))
}
