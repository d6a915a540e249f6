//! `slidegate demo`.

use crate::program::run;

#[test]
fn every_algorithm_has_its_line_and_numbers() {
    let demo = run(&["demo"], "");
    assert_eq!((demo.code, demo.err.as_str()), (0, ""));
    let lines: Vec<&str> = demo.out.lines().filter(|line| line.contains(" accepted ")).collect();
    assert_eq!(
        lines,
        [
            "fixed-window  accepted 100 of 100     OVER   bound 2L = 100",
            "sliding-log  accepted 50 of 100       holds  bound L = 50",
            "compact-log  accepted 50 of 100       holds  bound L = 50",
            "sliding-buckets  accepted 50 of 100   holds  bound L = 50",
            "sliding-counter  accepted 55 of 100   OVER   bound 2L-1 = 99",
            "gcra  accepted 60 of 100              OVER   bound 2L-1 = 99",
        ]
    );
}

#[test]
fn the_picture_is_above_the_lines_and_the_next_step_below() {
    let out = run(&["demo"], "").out;
    let (above, below) = out.split_once("fixed-window").unwrap();
    assert!(above.contains("|-----------------x-|-x-----------------|"), "{above}");
    assert!(below.lines().last().unwrap().contains("slidegate replay --help"), "{below}");
    assert!(!out.contains('\x1b'), "no colours away from a terminal");
}

#[test]
fn the_picture_is_drawn_to_scale() {
    let out = run(&["demo"], "").out;
    let column = |line: &str, text: &str| line.find(text).unwrap();
    let lines: Vec<&str> = out.lines().skip_while(|line| !line.contains("10 s  ")).collect();
    let (scale, bursts, window) = (lines[0], lines[1], lines[2]);
    // Two columns per second.
    assert_eq!(column(scale, "20 s") - column(scale, "0 s"), 40);
    assert_eq!(column(bursts, "x") - column(bursts, "|"), 18);
    assert_eq!(column(window, ">") - column(window, "<"), 20);
    assert_eq!(column(window, ">"), bursts.match_indices('x').nth(1).unwrap().0);
}
