//! Functions of the language: names, parameters and results.

use super::types::Type;

/// Function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    InNetwork,
    Length,
    Kind,
    Lower,
    Upper,
    Trim,
    TrimPrefix,
    TrimSuffix,
    Split,
    SplitAfter,
    Replace,
    Repeat,
    Join,
    IndexOf,
    LastIndexOf,
    HasPrefix,
    HasSuffix,
    Text,
    Integer,
    Float,
    Absolute,
    Ceiling,
    Floor,
    Round,
    Maximum,
    Minimum,
    Sum,
    Mean,
    Median,
    First,
    Last,
    Get,
    Take,
    Reverse,
    Concatenate,
    Flatten,
    Unique,
    Sort,
    ToJson,
    ToBase64,
    FromBase64,
    FromJson,
    Keys,
    Values,
    ToPairs,
    FromPairs,
    BitAnd,
    BitOr,
    BitXor,
    BitNand,
    BitNot,
    ShiftLeft,
    ShiftRight,
}

/// Parameters and result of a function.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) function: Function,
    /// Types of the parameters. With [`MANY`], that of all parameters.
    parameters: &'static [Type],
    /// Number of parameters at the end that may be left out, or [`MANY`].
    optional: usize,
    pub(super) result: Type,
}

/// Number of optional parameters of a function that takes one argument or more.
const MANY: usize = usize::MAX;

impl Signature {
    /// Returns the function with this name.
    pub(super) fn of(name: &str) -> Option<&'static Signature> {
        SIGNATURES.iter().find(|signature| signature.name == name)
    }

    /// Returns true if arguments of these types are valid.
    pub(super) fn accepts(&self, arguments: &[Type]) -> bool {
        let wanted = self.parameters;
        let counts = if self.optional == MANY {
            !arguments.is_empty()
        } else {
            (wanted.len() - self.optional..=wanted.len()).contains(&arguments.len())
        };
        let types = wanted.iter().chain(core::iter::repeat(wanted.last().unwrap_or(&Type::Any)));
        counts && arguments.iter().zip(types).all(|(argument, wanted)| argument.fits(*wanted))
    }
}

use Type::{Any, Bool, Float, Integer, List, Text};

const SIGNATURES: [Signature; 53] = [
    of("incidr", Function::InNetwork, &[Text, Text], 0, Bool),
    of("len", Function::Length, &[Any], 0, Integer),
    of("type", Function::Kind, &[Any], 0, Text),
    of("lower", Function::Lower, &[Text], 0, Text),
    of("upper", Function::Upper, &[Text], 0, Text),
    of("trim", Function::Trim, &[Text, Text], 1, Text),
    of("trimPrefix", Function::TrimPrefix, &[Text, Text], 1, Text),
    of("trimSuffix", Function::TrimSuffix, &[Text, Text], 1, Text),
    of("split", Function::Split, &[Text, Text, Integer], 1, List),
    of("splitAfter", Function::SplitAfter, &[Text, Text, Integer], 1, List),
    of("replace", Function::Replace, &[Text, Text, Text, Integer], 1, Text),
    of("repeat", Function::Repeat, &[Text, Integer], 0, Text),
    of("join", Function::Join, &[List, Text], 1, Text),
    of("indexOf", Function::IndexOf, &[Text, Text], 0, Integer),
    of("lastIndexOf", Function::LastIndexOf, &[Text, Text], 0, Integer),
    of("hasPrefix", Function::HasPrefix, &[Text, Text], 0, Bool),
    of("hasSuffix", Function::HasSuffix, &[Text, Text], 0, Bool),
    of("string", Function::Text, &[Any], 0, Text),
    of("int", Function::Integer, &[Any], 0, Integer),
    of("float", Function::Float, &[Any], 0, Float),
    of("abs", Function::Absolute, &[Float], 0, Any),
    of("ceil", Function::Ceiling, &[Float], 0, Float),
    of("floor", Function::Floor, &[Float], 0, Float),
    of("round", Function::Round, &[Float], 0, Float),
    of("max", Function::Maximum, &[Any], MANY, Any),
    of("min", Function::Minimum, &[Any], MANY, Any),
    of("sum", Function::Sum, &[List], 0, Any),
    of("mean", Function::Mean, &[Any], MANY, Float),
    of("median", Function::Median, &[Any], MANY, Float),
    of("first", Function::First, &[List], 0, Any),
    of("last", Function::Last, &[List], 0, Any),
    of("get", Function::Get, &[Any, Any], 0, Any),
    of("take", Function::Take, &[List, Integer], 0, List),
    of("reverse", Function::Reverse, &[List], 0, List),
    of("concat", Function::Concatenate, &[List], MANY, List),
    of("flatten", Function::Flatten, &[List], 0, List),
    of("uniq", Function::Unique, &[List], 0, List),
    of("sort", Function::Sort, &[List, Text], 1, List),
    of("toJSON", Function::ToJson, &[Any], 0, Text),
    of("toBase64", Function::ToBase64, &[Text], 0, Text),
    of("fromBase64", Function::FromBase64, &[Text], 0, Text),
    of("fromJSON", Function::FromJson, &[Text], 0, Any),
    of("keys", Function::Keys, &[Any], 0, List),
    of("values", Function::Values, &[Any], 0, List),
    of("toPairs", Function::ToPairs, &[Any], 0, List),
    of("fromPairs", Function::FromPairs, &[List], 0, Any),
    of("bitand", Function::BitAnd, &[Integer, Integer], 0, Integer),
    of("bitor", Function::BitOr, &[Integer, Integer], 0, Integer),
    of("bitxor", Function::BitXor, &[Integer, Integer], 0, Integer),
    of("bitnand", Function::BitNand, &[Integer, Integer], 0, Integer),
    of("bitnot", Function::BitNot, &[Integer], 0, Integer),
    of("bitshl", Function::ShiftLeft, &[Integer, Integer], 0, Integer),
    of("bitshr", Function::ShiftRight, &[Integer, Integer], 0, Integer),
];

const fn of(
    name: &'static str,
    function: Function,
    parameters: &'static [Type],
    optional: usize,
    result: Type,
) -> Signature {
    Signature { name, function, parameters, optional, result }
}
