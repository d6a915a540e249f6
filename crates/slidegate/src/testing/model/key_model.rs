//! The models of one (rule, key): one per limit of the rule.

use super::decision::ModelVerdict;
use super::limit_model::{LimitModel, ModelPlace};
use crate::charge::Charge;
use crate::rule::{Limit, Rule};

/// One model per limit, in the order of the rule.
#[derive(Debug, Clone)]
pub(super) struct KeyModel {
    models: Vec<LimitModel>,
}

impl KeyModel {
    /// The models of a new key.
    pub(super) fn new(limits: &[Limit]) -> Self {
        Self { models: limits.iter().map(|&limit| LimitModel::new(limit)).collect() }
    }

    /// The models after a live change to `limits` at `now_us`: each limit continues the model of its geometry; one
    /// without starts with the largest use, stamped now.
    pub(super) fn changed(&self, limits: &[Limit], now_us: u64) -> Self {
        let models = self.continued(limits, now_us, self.used_max(now_us)).models;
        let models = models.into_iter().zip(limits).map(|(model, limit)| model.changed(limit, now_us));
        Self { models: models.collect() }
    }

    /// Whether there is a model of the right geometry for every limit, in order.
    pub(super) fn fits(&self, limits: &[Limit]) -> bool {
        limits.len() == self.models.len()
            && limits.iter().zip(&self.models).all(|(limit, model)| limit.keeps_state_of(model.limit()))
    }

    /// Itself if it fits; otherwise a limit without a model of its geometry starts with the largest use at the last
    /// charge, stamped at the latest possible instant of that charge.
    pub(super) fn adapted_to(&self, limits: &[Limit]) -> Self {
        if self.fits(limits) {
            return self.clone();
        }
        let charged_by_us = self.models.iter().map(LimitModel::charged_by_us).max().unwrap_or(0);
        // Time does not run backwards past the last charge, so 0 is the instant of that charge.
        self.continued(limits, charged_by_us, self.used_max(0))
    }

    fn continued(&self, limits: &[Limit], at_us: u64, used: u64) -> Self {
        let continued = |limit: &Limit| {
            let older = self.models.iter().find(|model| limit.keeps_state_of(model.limit()));
            older.cloned().unwrap_or_else(|| LimitModel::seeded(*limit, at_us, used))
        };
        Self { models: limits.iter().map(continued).collect() }
    }

    /// The verdict on `ask`; its limits fit.
    pub(super) fn decide(&self, now_us: u64, ask: &Charge<'_>) -> ModelVerdict {
        self.verdict(ask.rule, |limit, model| {
            let passes_some_day = ask.cost <= limit.units();
            let wait = passes_some_day.then(|| model.decide(limit, now_us, ask.cost).retry_after_us);
            ModelVerdict::of_limit(
                ask.rule.name(),
                ask.rule.shadow(),
                limit,
                model.usage(limit, now_us),
                wait,
            )
        })
    }

    /// The verdict of `rule` after an admission; its limits fit.
    pub(super) fn admitted(&self, now_us: u64, rule: &Rule) -> ModelVerdict {
        self.verdict(rule, |limit, model| {
            let usage = model.usage(limit, now_us);
            ModelVerdict::of_limit(rule.name(), rule.shadow(), limit, usage, Some(0))
        })
    }

    fn verdict(&self, rule: &Rule, of_limit: impl Fn(&Limit, &LimitModel) -> ModelVerdict) -> ModelVerdict {
        let verdicts: Vec<_> =
            rule.limits().iter().zip(&self.models).map(|(limit, model)| of_limit(limit, model)).collect();
        ModelVerdict::joined(&verdicts)
    }

    /// Charges every limit; they fit.
    pub(super) fn charge(&mut self, limits: &[Limit], now_us: u64, cost: u64) -> Vec<ModelPlace> {
        limits.iter().zip(&mut self.models).map(|(limit, model)| model.charge(limit, now_us, cost)).collect()
    }

    /// Charges the excess of a settlement, under the present limits.
    pub(super) fn charge_excess(&mut self, now_us: u64, units: u64) {
        for model in &mut self.models {
            let limit = *model.limit();
            model.charge_excess(&limit, now_us, units);
        }
    }

    /// Refunds every limit at the place of its geometry, unless it is void; returns the largest number of units.
    pub(super) fn refund(
        &mut self,
        now_us: u64,
        places: &[ModelPlace],
        units: u64,
        void: impl Fn(&ModelPlace) -> bool,
    ) -> u64 {
        let refund = |model: &mut LimitModel| {
            let mut places = places.iter().filter(|place| !void(place));
            let place = places.find(|place| model.limit().keeps_state_of(&place.limit));
            place.map_or(0, |place| model.refund(now_us, place, units))
        };
        self.models.iter_mut().map(refund).max().unwrap_or(0)
    }

    /// Credits every limit; they fit. Returns the largest fall of `used`.
    pub(super) fn credit(&mut self, limits: &[Limit], now_us: u64, units: u64) -> u64 {
        let falls =
            limits.iter().zip(&mut self.models).map(|(limit, model)| model.credit(limit, now_us, units));
        falls.max().unwrap_or(0)
    }

    /// The largest use of any limit.
    pub(super) fn used_max(&self, now_us: u64) -> u64 {
        self.models.iter().map(|model| model.usage(model.limit(), now_us).used).max().unwrap_or(0)
    }

    /// Follows a clock that was set back. Returns the limits whose charges became one charge at `to_us`.
    pub(super) fn set_back(&mut self, from_us: u64, to_us: u64) -> Vec<Limit> {
        let moved = self.models.iter_mut().filter_map(|model| {
            let moved = model.set_back(from_us, to_us);
            moved.then(|| *model.limit())
        });
        moved.collect()
    }

    /// Whether by `now_us` nothing is used and no receipt could give anything back.
    pub(super) fn has_ended(&self, now_us: u64) -> bool {
        self.models.iter().all(|model| model.has_ended(now_us))
    }

    /// The models, in the order of the limits.
    pub(super) fn models(&self) -> &[LimitModel] {
        &self.models
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{SECOND_US, limit};
    use super::*;
    use crate::algorithm::Usage;
    use crate::rule::Algorithm;

    #[test]
    fn each_limit_continues_the_model_of_its_geometry() {
        let of = |rate: &str| limit(rate, Algorithm::SlidingLog);
        let mut key_model = KeyModel::new(&[of("5/1s"), of("60/30s")]);
        key_model.charge(&[of("5/1s"), of("60/30s")], 0, 4);
        key_model.charge(&[of("5/1s"), of("60/30s")], 2 * SECOND_US, 3);
        let limits = [of("90/30s"), of("100/5m")];
        let changed = key_model.changed(&limits, 10 * SECOND_US);
        let usages: Vec<Usage> = limits
            .iter()
            .zip(changed.models())
            .map(|(limit, model)| model.usage(limit, 10 * SECOND_US))
            .collect();
        let expected = [22, 300].map(|after_s| Usage { used: 7, reset_after_us: after_s * SECOND_US });
        assert_eq!(usages, expected);
        let other_limits = key_model.adapted_to(&[of("1/1s"), of("2/30s")]);
        assert_eq!(other_limits.used_max(10 * SECOND_US), 7, "another limit is the same geometry");
    }
}
