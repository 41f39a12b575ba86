//! Enums whose values have a name, which stands beside its value.

/// Defines an enum whose values have a name: `Variant = "name"`. Their numbers are their places; a
/// new value comes last where numbers are stored.
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
            /// All of them; each has its number as its place.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// Its name for users. Files have those of `Hardware`, and of `Extra` before a reason.
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
