//! Defines enums whose values have a name on the command line and in CSV and JSON, and a title in text.

/// Defines an enum whose values have a name and a title: `Variant = "name", "title";`. `ALL` has the values
/// in the order of the definition.
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

            /// The names of the enum's values, in the order of `ALL`.
            #[allow(dead_code)] // not every enum is an argument of a tool for agents
            pub const NAMES: [&'static str; Self::ALL.len()] = [$($name),*];

            /// The name of the enum's value on the command line, in CSV and in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)*
                }
            }

            /// The name of the enum's value as a key of JSON, with underscores.
            #[allow(dead_code)] // not every enum is a key of JSON
            pub fn key(self) -> String {
                self.name().replace('-', "_")
            }

            /// The title of the enum's value in text for people.
            pub fn title(self) -> &'static str {
                match self {
                    $($enum::$variant => $title,)*
                }
            }
        }
    };
}
