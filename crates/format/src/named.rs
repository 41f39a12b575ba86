//! A macro for enums whose values have names. Each name is declared beside its value.

/// Defines an enum whose values have names, from lines `Variant = "name"`. The number of a value is its
/// position, so where numbers are stored in files, a new value has to come last.
macro_rules! named {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($(#[$of:meta])* $variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$doc])*
        pub enum $name {
            $($(#[$of])* $variant,)*
        }

        impl $name {
            /// All values of the enum. The position of a value in this list is its number.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// The name of the enum's value for users. Traces store the names of the values of `Hardware` and `Extra`,
            /// too.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
