//! The runtime routines that the compiler itself calls, by name. `td/NaplesPURuntime.td` contains
//! the table. [`crate::runtime`] contains the locations of their arguments and results.

/// Declares the routines of `td/NaplesPURuntime.td`: variant, name, words of arguments, words of
/// results.
macro_rules! routines {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $args:literal -> $results:literal;)*) => {
        /// A routine that the compiler itself calls. Arguments and results are words; a value of
        /// several words has its low word first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Routine {
            $($(#[$doc])* $variant,)*
        }

        impl Routine {
            /// All routines.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name, without the `%` of CLIF.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the routine with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|routine| routine.name() == name)
            }

            /// Returns the numbers of argument words and result words.
            pub fn words(self) -> (usize, usize) {
                match self {
                    $(Self::$variant => ($args, $results),)*
                }
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/routines.rs"));
