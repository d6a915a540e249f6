//! Completions and manual pages, as shells and `man` use them.

use std::fs;
use std::process::Command;

use crate::program::{command, file_of, fresh, output_of, run};

/// The completions that bash offers for the last of these words.
fn completed(words: &[&str]) -> Vec<String> {
    let script = file_of("slidegate.bash", run(&["completions", "bash"], "").out);
    // Calls the function that the script registers, as bash does.
    let typed = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let last = words.len() - 1;
    let script = format!(
        "source '{script}'; COMP_WORDS=({typed}); COMP_CWORD={last}; _slidegate slidegate '{}' '{}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"; complete -p slidegate",
        words[last],
        words[last - 1]
    );
    let output =
        Command::new("bash").args(["--norc", "--noprofile", "-c", &script]).output().expect("bash is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let offered = String::from_utf8(output.stdout).expect("text");
    let (offered, registered) = offered.trim_end().rsplit_once('\n').expect("what is registered comes last");
    assert!(registered.contains("-F _slidegate") && registered.ends_with(" slidegate"), "{registered}");
    offered.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    assert_eq!(completed(&["slidegate", "ch"]), ["check"]);
    assert_eq!(completed(&["slidegate", "re"]), ["reset", "replay", "redis"]);
    assert_eq!(completed(&["slidegate", "check", "--al"]), ["--also", "--algorithm"]);
    assert_eq!(completed(&["slidegate", "run", "--wa"]), ["--wait"]);
    assert_eq!(completed(&["slidegate", "check", "--on-store-error", ""]), ["deny", "allow"]);
    assert_eq!(completed(&["slidegate", "check", "--algorithm", "sliding-l"]), ["sliding-log"]);
    assert_eq!(completed(&["slidegate", "completions", ""]), ["-h", "--help", "bash", "zsh", "fish"]);
}

#[test]
fn every_shell_has_a_valid_script() {
    let bash = file_of("slidegate.bash", run(&["completions", "bash"], "").out);
    let checked = Command::new("bash").args(["-n", &bash]).output().expect("bash is there");
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
    for (shell, marks) in [
        (
            "zsh",
            [
                "#compdef slidegate",
                "'check:Charge units",
                "--on-store-error=",
                "compdef _slidegate slidegate",
            ],
        ),
        ("fish", ["complete -c slidegate", "-a \"check\"", "-l on-store-error", "-l wait"]),
    ] {
        let script = run(&["completions", shell], "").out;
        for mark in marks {
            assert!(script.contains(mark), "{shell}: {mark}");
        }
        // Checked by the shell itself if it is installed.
        if let Ok(checked) = Command::new(shell).arg("-n").arg(file_of("script", script)).output() {
            assert!(checked.status.success(), "{checked:?}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = fresh("man1");
    let written = run(&["man", "--dir", directory.to_str().expect("a path of text")], "");
    assert_eq!((written.code, written.out.as_str(), written.err.as_str()), (0, "", ""));
    let mut pages: Vec<String> = fs::read_dir(&directory)
        .expect("it is there")
        .map(|page| page.expect("a name").file_name().into_string().expect("text"))
        .collect();
    pages.sort();
    let names = "-check -completions -config -config-example -demo -help -man -peek -redis -redis-script -replay \
                 -reset -run -schema -serve -token -validate";
    let expected: Vec<String> = ["slidegate.1".to_owned()]
        .into_iter()
        .chain(names.split_whitespace().map(|name| format!("slidegate{name}.1")))
        .collect();
    pages.sort_by_key(|page| page.replace(".1", ""));
    assert_eq!(pages, expected);
    let page = fs::read_to_string(directory.join("slidegate-check.1")).expect("a page");
    for mark in
        [".TH slidegate-check 1", ".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", "yt:quota:key1", "\\-\\-also"]
    {
        assert!(page.contains(mark), "{mark}: {page}");
    }
    assert_eq!(run(&["man"], "").out, fs::read_to_string(directory.join("slidegate.1")).expect("a page"));
}

/// No warnings, and examples that can be pasted.
#[test]
fn manual_pages_are_well_formed() {
    const KNOWN: [&str; 12] =
        [".TH", ".SH", ".TP", ".PP", ".RS", ".RE", ".br", ".nf", ".fi", ".ie", ".el", ".IP"];
    let directory = fresh("man1");
    assert_eq!(run(&["man", "--dir", directory.to_str().expect("text")], "").code, 0);
    for page in fs::read_dir(&directory).expect("it is there").map(|page| page.expect("a name").path()) {
        let text = fs::read_to_string(&page).expect("a page");
        for line in text.lines().filter(|line| line.starts_with('.')) {
            let request = line.split_whitespace().next().expect("a request");
            assert!(KNOWN.contains(&request), "{}: {line}", page.display());
        }
        assert_eq!(text.matches(".nf\n").count(), text.matches(".fi\n").count());
        // Checked by groff if it is installed.
        let Ok(shown) = Command::new("groff").args(["-man", "-Tutf8", "-P-c", "-ww"]).arg(&page).output()
        else {
            continue;
        };
        assert!(shown.status.success() && shown.stderr.is_empty(), "{}: {shown:?}", page.display());
    }
    let page = fs::read_to_string(directory.join("slidegate-check.1")).expect("a page");
    let example = r"
  slidegate check yt:quota:key1 \-\-limit 9500/24h \-\-cost 100 \\
      \-\-also yt:search:key1=500/10m || exit 0
";
    assert!(page.contains(example), "{page}");
}

#[test]
fn version_and_help_open_no_store() {
    let home = fresh("home");
    for (args, code) in
        [(&["--version"][..], 0), (&["check", "--help"], 0), (&["check", "alice"], 2), (&["help", "keys"], 0)]
    {
        let mut program = command(args);
        program.env("HOME", &home).env("XDG_STATE_HOME", &home).env("SLIDEGATE_STORE", "redis://127.0.0.1:1");
        assert_eq!(output_of(&mut program).code, code, "{args:?}");
    }
    assert_eq!(fs::read_dir(&home).expect("it is there").count(), 0);
}
