//! Values without parts: a name, a whole number, true or false.

use super::node::{Node, Value};

pub(super) fn word(node: &Node) -> Result<&str, String> {
    match &node.value {
        Value::Text(text) => Ok(text),
        other => Err(format!(
            "expected a name, found {}; write the name without brackets or as text",
            other.kind()
        )),
    }
}

pub(super) fn whole(node: &Node) -> Result<u64, String> {
    match node.value {
        Value::Whole(number) => Ok(number),
        ref other => Err(format!("expected a whole number, found {}; write digits only", other.kind())),
    }
}

pub(super) fn boolean(node: &Node) -> Result<bool, String> {
    match node.value {
        Value::Bool(value) => Ok(value),
        ref other => Err(format!("expected true or false, found {}; write one of them", other.kind())),
    }
}
