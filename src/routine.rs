//! The routines of the runtime that compiled code calls on its own, by name: `td/NaplesPURuntime.td` has the table. Where their arguments and
//! results are: [`crate::runtime`].

/// Declares the routines of `td/NaplesPURuntime.td`: variant, name, words of arguments, words of results.
macro_rules! routines {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $args:literal -> $results:literal;)*) => {
        /// A routine that compiled code calls on its own. Arguments and results are words; a value of several words has
        /// its low word first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Routine {
            $($(#[$doc])* $variant,)*
        }

        impl Routine {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name, without the `%` of CLIF.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The routine of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|routine| routine.name() == name)
            }

            /// How many words it takes and gives.
            pub fn words(self) -> (usize, usize) {
                match self {
                    $(Self::$variant => ($args, $results),)*
                }
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/routines.rs"));
