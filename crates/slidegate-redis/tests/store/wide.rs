//! The wide arithmetic of the scripts equals that of 128 bits, on random operands and around every bound.

use crate::common::RedisServer;
use slidegate::testing::Rng;

/// Replies for each three operands a, b, d: a x b, its quotient and rest by d, the two rounded
/// shares, and whether a x b is at most b x d.
const JUDGED: &str = concat!(
    "local floor, unpack, pack = math.floor, struct.unpack, struct.pack\n",
    include_str!("../../scripts/constants.lua"),
    include_str!("../../scripts/wide.lua"),
    r"
local w, replies = wide(), {}
for index = 1, #ARGV, 3 do
  local a, b, d = tonumber(ARGV[index]), tonumber(ARGV[index + 1]), tonumber(ARGV[index + 2])
  local h, l = w.mul(a, b)
  local qh, ql, rest = w.div(h, l, d)
  local sh, sl = saturating_sub(h, l, w.mul(b, d))
  local ah, al = add(h, l, sh, sl)
  local down, up = -1, -1
  if qh < 16 then down, up = quotient(a, b, d), share_rounded_up(a, b, d) end
  local most = product_at_most(a, b, b, d) and 1 or 0
  replies[#replies + 1] = pack('>I7I7I7I7I7I7I7I7I7', h, l, qh, ql, rest, sh, sl, ah, al)
  replies[#replies + 1] = { down, up, most }
end
return replies
"
);

/// Operands around every power of two and every bound of the scripts.
fn edges(below: u64) -> Vec<u64> {
    let mut edges = vec![1, 1_000, 1_000_000, 999_999_999_999, 1_000_000_000_000, 34_560_000_000_000];
    for bits in 1..53 {
        edges.extend([(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1]);
    }
    edges.retain(|&edge| edge < below);
    edges
}

#[tokio::test]
async fn scripts_multiply_and_divide_like_128_bits() {
    let server = RedisServer::start();
    let mut connection = server.async_connection().await;
    let mut rng = Rng::new(94);
    let (units, times, divisors) = (edges(1 << 49), edges(1 << 46), edges(1 << 49));
    for _ in 0..200 {
        let mut pick = |edges: &[u64]| {
            if rng.one_in(3) {
                rng.between(1, *edges.iter().max().unwrap()) >> rng.below(30)
            } else {
                *rng.pick(edges)
            }
            .max(1)
        };
        let mut operands: Vec<[u64; 3]> =
            (0..100).map(|_| [pick(&units), pick(&times), pick(&divisors)]).collect();
        // Large quotients without a rest: an estimate in doubles is often one too small.
        operands.extend((0..20).map(|_| {
            let time = rng.between(1, (1 << 46) - 1);
            [rng.between(1 << 47, (1 << 48) - 1), time, time]
        }));
        let mut command = redis::cmd("EVAL");
        command.arg(JUDGED).arg(0);
        for operand in operands.iter().flatten() {
            command.arg(*operand);
        }
        let replies: Vec<(Vec<u8>, (i64, i64, i64))> = command.query_async(&mut connection).await.unwrap();
        assert_eq!(replies.len(), operands.len());
        for ([a, b, d], (numbers, (down, up, at_most))) in operands.into_iter().zip(replies) {
            let story = format!("{a} x {b} by {d}");
            let number = |index: usize| {
                numbers[7 * index..7 * index + 7]
                    .iter()
                    .fold(0_u128, |number, &byte| number << 8 | u128::from(byte))
            };
            let wide = |index: usize| {
                assert!(number(index + 1) < 1 << 48, "{story}: the low half is too long");
                (number(index) << 48) + number(index + 1)
            };
            let (product, other) = (u128::from(a) * u128::from(b), u128::from(b) * u128::from(d));
            let divisor = u128::from(d);
            assert_eq!(wide(0), product, "{story}: product");
            assert_eq!(
                (wide(2), number(4)),
                (product / divisor, product % divisor),
                "{story}: quotient and rest"
            );
            assert_eq!(wide(5), product.saturating_sub(other), "{story}: difference");
            assert_eq!(wide(7), product + product.saturating_sub(other), "{story}: sum");
            if product / divisor < 16 << 48 {
                assert_eq!(u128::try_from(down).unwrap(), product / divisor, "{story}: share, rounded down");
                assert_eq!(
                    u128::try_from(up).unwrap(),
                    product.div_ceil(divisor),
                    "{story}: share, rounded up"
                );
            }
            assert_eq!(at_most == 1, product <= other, "{story}: comparison");
        }
    }
}
