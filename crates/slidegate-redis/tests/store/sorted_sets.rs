//! The limits of sorted sets: charges of more than a million units, and times that a score cannot hold exactly. Both are
//! refused, and nothing is charged.

use crate::common::*;
use crate::foreign_values::assert_refused;
use slidegate::Algorithm;
use slidegate::store::Call;

#[test]
fn charges_that_a_sorted_set_cannot_hold_are_refused() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let (_, store) = stores(&server.url()).await.remove(1);
        let large = rule("large", &["2000000/1h"], Algorithm::SlidingLog);
        check(&store, Call::now(), &large, 2_000).await;
        let before = watch.everything();
        let error = ask(&store, Call::now(), &large, 1_000_001).await.unwrap_err();
        assert!(error.to_string().contains("use the packed layout"), "{error}");
        assert_refused(Some(error), "units");
        // The year 2252, and 2^53 microseconds.
        for at_us in [8_900_000_000_000_000, 1 << 53] {
            assert_refused(ask(&store, Call::at_us(at_us), &large, 1).await.err(), "time");
        }
        assert_eq!(watch.everything(), before);
        assert_eq!(used(&store, Call::now(), &large).await, 2_000);
    });
}
