//! Enums whose values have a name on the command line and in CSV and JSON, and a
//! title in text.

/// Defines such an enum: `Variant = "name", "title";`. `ALL` has the order of
/// the definition.
#[macro_export]
macro_rules! named {
    (
        $(#[$attribute:meta])*
        $public:vis enum $enum:ident {
            $($(#[$doc:meta])* $variant:ident = $name:literal, $title:expr;)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $public enum $enum {
            $($(#[$doc])* $variant,)*
        }

        impl $enum {
            #[allow(dead_code)] // not every enum is listed
            pub const ALL: [$enum; [$($name),*].len()] = [$($enum::$variant),*];

            /// The name on the command line, in CSV and in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)*
                }
            }

            /// The name as a key of JSON.
            #[allow(dead_code)] // not every enum is a key of JSON
            pub fn key(self) -> String {
                self.name().replace('-', "_")
            }

            /// The title in text.
            pub fn title(self) -> &'static str {
                match self {
                    $($enum::$variant => $title,)*
                }
            }
        }
    };
}
