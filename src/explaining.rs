//! The explanation of a function while it is compiled, if one is wanted. Without the feature `explain` none ever is.

#[cfg(not(feature = "explain"))]
pub use unwanted::Explaining;
#[cfg(feature = "explain")]
pub use wanted::Explaining;

#[cfg(feature = "explain")]
mod wanted {
    use crate::explain::Explanation;
    use crate::finish::func::MachFunction;
    use crate::reason::Reasons;
    use crate::vcode::VCode;

    /// The explanation so far, if one is wanted.
    #[derive(Debug, Default)]
    pub struct Explaining(pub Option<Explanation>);

    impl Explaining {
        /// Whether an explanation is wanted.
        pub fn is_wanted(&self) -> bool {
            self.0.is_some()
        }

        /// Starts the explanation; the VCode is complete.
        pub fn vcode(&mut self, vcode: &VCode) {
            if let Some(explanation) = &mut self.0 {
                *explanation = Explanation::of_vcode(vcode);
            }
        }

        /// Completes the explanation; the code is complete.
        pub fn code(&mut self, func: &MachFunction, reasons: &Reasons) {
            if let Some(explanation) = &mut self.0 {
                explanation.add(func, reasons);
            }
        }
    }
}

#[cfg(not(feature = "explain"))]
mod unwanted {
    use crate::finish::func::MachFunction;
    use crate::reason::Reasons;
    use crate::vcode::VCode;

    /// No explanation.
    #[derive(Debug, Default)]
    pub struct Explaining(());

    impl Explaining {
        /// An explanation is never wanted.
        #[inline]
        pub fn is_wanted(&self) -> bool {
            false
        }

        /// Does nothing.
        #[inline]
        pub fn vcode(&mut self, _: &VCode) {}

        /// Does nothing.
        #[inline]
        pub fn code(&mut self, _: &MachFunction, _: &Reasons) {}
    }
}
