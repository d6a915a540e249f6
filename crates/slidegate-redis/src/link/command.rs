//! Commands, and the pipelines that send them.

use std::sync::Arc;

use redis::{Cmd, Pipeline};

use super::queued_call::QueuedCall;
use crate::scripts::Script;

/// How many keys one step of a SCAN visits. Few, because Redis serves no other client meanwhile.
const SCAN_COUNT: u32 = 512;

/// The last of the round trips that load unknown scripts.
pub(super) const ROUND_LAST: u32 = 2;

/// One script call.
#[derive(Debug, Clone)]
pub(crate) struct ScriptCall {
    pub(crate) script: &'static Script,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) args: Vec<Vec<u8>>,
}

/// A command. A script call is shared with the caller, who may have to send it to another node of a cluster.
#[derive(Debug, Clone)]
pub(super) enum Command {
    Script(Arc<ScriptCall>),
    /// A script call on a node that its slot is just moving to. `ASKING` before it lets that node execute it.
    AskingScript(Arc<ScriptCall>),
    Scan {
        pattern: Vec<u8>,
        cursor: u64,
    },
    ClusterSlots,
}

impl Command {
    /// Approximate bytes on the wire, without the text of a script.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Script(call) | Self::AskingScript(call) => {
                call.keys.iter().chain(&call.args).map(|part| part.len() + 16).sum::<usize>() + 64
            }
            Self::Scan { pattern, .. } => pattern.len() + 64,
            Self::ClusterSlots => 64,
        }
    }

    /// How many replies come before the one that counts.
    pub(super) fn replies_before(&self) -> usize {
        usize::from(matches!(self, Self::AskingScript(_)))
    }
}

/// The commands of all calls, in order, for one of the round trips 0 to [`ROUND_LAST`].
///
/// In the first round calls name their script by its hash, which Redis nearly always knows. In the next, the first call
/// of every script sends its text, which loads it. In the last all calls send it: that works even if another client
/// flushes the scripts meanwhile.
pub(super) fn pipeline(calls: &[QueuedCall], round: u32) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(calls.len());
    let mut loaded: Vec<&str> = Vec::new();
    for call in calls {
        if let Command::AskingScript(_) = &call.command {
            pipeline.add_command(redis::cmd("ASKING"));
        }
        pipeline.add_command(match &call.command {
            Command::Script(call) | Command::AskingScript(call) => {
                let by_text = round > 0 && (round == ROUND_LAST || !loaded.contains(&&*call.script.sha));
                loaded.extend(by_text.then_some(&*call.script.sha));
                script(call, by_text)
            }
            Command::Scan { pattern, cursor } => scan(pattern, *cursor),
            Command::ClusterSlots => {
                let mut command = redis::cmd("CLUSTER");
                command.arg("SLOTS");
                command
            }
        });
    }
    pipeline
}

fn script(call: &ScriptCall, by_text: bool) -> Cmd {
    let (verb, script) = if by_text { ("EVAL", call.script.text) } else { ("EVALSHA", &*call.script.sha) };
    let mut command = redis::cmd(verb);
    command.arg(script).arg(call.keys.len());
    for part in call.keys.iter().chain(&call.args) {
        command.arg(&part[..]);
    }
    command
}

fn scan(pattern: &[u8], cursor: u64) -> Cmd {
    let mut command = redis::cmd("SCAN");
    command.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT);
    command
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use tokio::time::Instant;

    use super::super::queued_call::queued_call;
    use super::*;

    static ONE: LazyLock<Script> = LazyLock::new(|| Script::new("one", "return 1"));
    static TWO: LazyLock<Script> = LazyLock::new(|| Script::new("two", "return 2"));

    fn packed(script: &'static Script, round: u32) -> Vec<String> {
        packed_commands([&ONE, script, &ONE].map(|script| Command::Script(call(script))), round)
    }

    fn call(script: &'static Script) -> Arc<ScriptCall> {
        Arc::new(ScriptCall { script, keys: vec![b"k\0\r\n".to_vec()], args: vec![Vec::new()] })
    }

    fn packed_commands<const N: usize>(commands: [Command; N], round: u32) -> Vec<String> {
        let calls = commands.map(|command| queued_call(command, Instant::now()).0);
        let text = |command: &Cmd| String::from_utf8_lossy(&command.get_packed_command()).into_owned();
        pipeline(&calls, round).cmd_iter().map(text).collect()
    }

    /// A node forgets ASKING after one command, so it stands before every call, also before the text of a script.
    #[test]
    fn asking_stands_before_each_call_of_a_moving_slot() {
        let asking = "*1\r\n$6\r\nASKING\r\n";
        for round in 0..=ROUND_LAST {
            let alone = packed_commands([Command::Script(call(&ONE))], round).remove(0);
            let commands =
                [Command::AskingScript(call(&ONE)), Command::ClusterSlots, Command::AskingScript(call(&TWO))];
            assert_eq!(commands.each_ref().map(Command::replies_before), [1, 0, 1]);
            let packed = packed_commands(commands, round);
            assert_eq!((packed.len(), &*packed[0], &packed[1], &*packed[3]), (5, asking, &alone, asking));
            assert_eq!(packed[2], "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n");
        }
    }

    #[test]
    fn each_round_names_scripts_by_hash_or_text() {
        let by_hash =
            format!("*5\r\n$7\r\nEVALSHA\r\n$40\r\n{}\r\n$1\r\n1\r\n$4\r\nk\0\r\n\r\n$0\r\n\r\n", ONE.sha);
        let by_text = "*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n$4\r\nk\0\r\n\r\n$0\r\n\r\n";
        assert_eq!(packed(&ONE, 0), [&*by_hash, &by_hash, &by_hash]);
        assert_eq!(packed(&ONE, 1), [by_text, &by_hash, &by_hash]);
        assert_eq!(packed(&ONE, ROUND_LAST), [by_text, by_text, by_text]);
        let mixed = packed(&TWO, 1);
        assert_eq!((&*mixed[0], &*mixed[2]), (by_text, &*by_hash));
        assert!(mixed[1].contains("return 2"), "{mixed:?}");
    }

    #[test]
    fn a_scan_is_one_step() {
        let packed = scan(b"sg:{*}:api", 7).get_packed_command();
        let expected =
            "*6\r\n$4\r\nSCAN\r\n$1\r\n7\r\n$5\r\nMATCH\r\n$10\r\nsg:{*}:api\r\n$5\r\nCOUNT\r\n$3\r\n512\r\n";
        assert_eq!(String::from_utf8(packed).unwrap(), expected);
    }
}
