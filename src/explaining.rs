//! The explanation of a function during its compilation, if requested. Without the feature
//! `explain` it is never requested.

#[cfg(not(feature = "explain"))]
pub use unwanted::Explaining;
#[cfg(feature = "explain")]
pub use wanted::Explaining;

#[cfg(feature = "explain")]
mod wanted {
    use crate::explain::Explanation;
    use crate::post_ra::func::MachFunction;
    use crate::provenance::RuleChains;
    use crate::vcode::VCode;

    /// The explanation so far, if requested.
    #[derive(Debug, Default)]
    pub struct Explaining(pub Option<Explanation>);

    impl Explaining {
        /// Returns whether an explanation is requested.
        pub fn is_wanted(&self) -> bool {
            self.0.is_some()
        }

        /// Starts the explanation of complete VCode.
        pub fn vcode(&mut self, vcode: &VCode) {
            if let Some(explanation) = &mut self.0 {
                *explanation = Explanation::of_vcode(vcode);
            }
        }

        /// Completes the explanation with the final code.
        pub fn code(&mut self, func: &MachFunction, rule_chains: &RuleChains) {
            if let Some(explanation) = &mut self.0 {
                explanation.add(func, rule_chains);
            }
        }
    }
}

#[cfg(not(feature = "explain"))]
mod unwanted {
    use crate::post_ra::func::MachFunction;
    use crate::provenance::RuleChains;
    use crate::vcode::VCode;

    /// No explanation.
    #[derive(Debug, Default)]
    pub struct Explaining(());

    impl Explaining {
        /// Returns `false`.
        #[inline]
        pub fn is_wanted(&self) -> bool {
            false
        }

        /// Has no effect.
        #[inline]
        pub fn vcode(&mut self, _: &VCode) {}

        /// Has no effect.
        #[inline]
        pub fn code(&mut self, _: &MachFunction, _: &RuleChains) {}
    }
}
