//! Plain values of a type, as Rust, by the type's words alone.
//!
//! A guess that the compiler refuses costs nothing: its mutant is none.

use syn::punctuated::Punctuated;
use syn::{GenericArgument, Path, PathArguments, ReturnType, Type, TypeImplTrait, TypeParamBound};

/// A value that no program has by chance.
const STRANGE: &str = "\"xyzzy\"";

/// Longest list of values of one type, where lists multiply.
const VALUES_MAX: usize = 12;

const UNSIGNED: [&str; 6] = ["u8", "u16", "u32", "u64", "u128", "usize"];
const SIGNED: [&str; 6] = ["i8", "i16", "i32", "i64", "i128", "isize"];
/// Made by `new` from what they hold.
const CONTAINERS: [&str; 6] = ["Arc", "Box", "Cell", "Mutex", "Rc", "RefCell"];
/// Made by `new`, or from an array of what they hold.
const COLLECTIONS: [&str; 5] = ["BTreeSet", "BinaryHeap", "HashSet", "LinkedList", "VecDeque"];
const MAPS: [&str; 2] = ["BTreeMap", "HashMap"];

/// The values that a function of this type could return instead of its own.
pub(super) fn of_return(output: &ReturnType, text: &dyn Fn(&Type) -> String) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, ty) => of(ty, text),
    }
}

fn of(ty: &Type, text: &dyn Fn(&Type) -> String) -> Vec<String> {
    match ty {
        Type::Path(path) => of_path(&path.path, text),
        Type::Reference(reference) => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") && reference.mutability.is_none() => {
                strings()
            }
            Type::Slice(slice) => {
                let one = of(&slice.elem, text);
                let one = one.into_iter().map(|value| format!("Vec::leak(vec![{value}])"));
                std::iter::once("Vec::leak(Vec::new())".to_owned()).chain(one).collect()
            }
            other => each(other, text, |value| format!("Box::leak(Box::new({value}))")),
        },
        Type::Tuple(tuple) => tuples(&tuple.elems, text),
        Type::Array(array) => {
            // The words behind the last semicolon: a length is an expression, not a type.
            let whole = text(ty);
            let length = whole.rsplit_once(';').map_or("0", |(_, length)| length);
            let length = length.trim().trim_end_matches(']').trim_end();
            each(&array.elem, text, |value| format!("[{value}; {length}]"))
        }
        Type::ImplTrait(traits) => iterators(traits, text),
        Type::Never(_) => Vec::new(),
        Type::Paren(inner) => of(&inner.elem, text),
        _ => vec!["Default::default()".to_owned()],
    }
}

fn each(
    ty: &Type,
    text: &dyn Fn(&Type) -> String,
    render: impl Fn(String) -> String,
) -> Vec<String> {
    of(ty, text).into_iter().map(render).collect()
}

fn owned(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

fn strings() -> Vec<String> {
    owned(&["\"\"", STRANGE])
}

fn of_path(path: &Path, text: &dyn Fn(&Type) -> String) -> Vec<String> {
    let Some(last) = path.segments.last() else { return Vec::new() };
    let name = last.ident.to_string();
    let arguments = types(&last.arguments);
    let is = |names: &[&str]| path.get_ident().is_some() && names.contains(&&*name);
    if is(&["bool"]) {
        owned(&["true", "false"])
    } else if is(&["String"]) {
        vec!["String::new()".to_owned(), format!("{STRANGE}.into()")]
    } else if is(&["str"]) {
        strings()
    } else if is(&UNSIGNED) {
        owned(&["0", "1"])
    } else if is(&SIGNED) {
        owned(&["0", "1", "-1"])
    } else if is(&["f32", "f64"]) {
        owned(&["0.0", "1.0", "-1.0"])
    } else if name == "Result" {
        results(path, &arguments, text)
    } else if let [inner] = arguments[..] {
        with_one_argument(&name, inner, text)
    } else if let ([key, value], true) = (&arguments[..], MAPS.contains(&&*name)) {
        let values = of(value, text);
        let pairs = of(key, text).into_iter().flat_map(|key| {
            values
                .iter()
                .map(move |value| format!("FromIterator::from_iter([({key}, {value})])"))
                .collect::<Vec<_>>()
        });
        std::iter::once(format!("{name}::new()")).chain(pairs).take(VALUES_MAX).collect()
    } else {
        owned(&["Default::default()"])
    }
}

fn with_one_argument(name: &str, inner: &Type, text: &dyn Fn(&Type) -> String) -> Vec<String> {
    let first = |first: String, rest: Vec<String>| {
        std::iter::once(first).chain(rest).take(VALUES_MAX).collect()
    };
    match name {
        "Option" => first("None".to_owned(), each(inner, text, |v| format!("Some({v})"))),
        "Vec" => first("vec![]".to_owned(), each(inner, text, |v| format!("vec![{v}]"))),
        "Cow" => each(inner, text, |v| format!("Cow::Borrowed({v})")),
        _ if CONTAINERS.contains(&name) => each(inner, text, |v| format!("{name}::new({v})")),
        _ if COLLECTIONS.contains(&name) => first(
            format!("{name}::new()"),
            each(inner, text, |v| format!("FromIterator::from_iter([{v}])")),
        ),
        _ => owned(&["Default::default()"]),
    }
}

/// `Ok` of each value, and `Err` where an error is easily had.
fn results(path: &Path, arguments: &[&Type], text: &dyn Fn(&Type) -> String) -> Vec<String> {
    let Some(good) = arguments.first() else {
        return owned(&["Ok(Default::default())"]);
    };
    let mut values = each(good, text, |value| format!("Ok({value})"));
    let of_io = path.segments.iter().rev().nth(1).is_some_and(|before| before.ident == "io");
    let error = match arguments.get(1) {
        Some(error) => in_words(&text(error)),
        None if of_io => "io::Error".to_owned(),
        None => String::new(),
    };
    let error = match &*error {
        "io::Error" | "std::io::Error" => format!("::std::io::Error::other({STRANGE})"),
        "String" => "String::new()".to_owned(),
        "()" => "()".to_owned(),
        _ => return values,
    };
    values.push(format!("Err({error})"));
    values
}

fn in_words(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Every combination, up to a number.
fn tuples<P>(elements: &Punctuated<Type, P>, text: &dyn Fn(&Type) -> String) -> Vec<String> {
    let mut rows: Vec<Vec<String>> = vec![Vec::new()];
    for element in elements {
        let values = of(element, text);
        let longer = rows.iter().flat_map(|row| {
            values.iter().map(|value| {
                let mut row = row.clone();
                row.push(value.clone());
                row
            })
        });
        rows = longer.take(VALUES_MAX).collect();
    }
    let tuple = |row: &Vec<String>| match &row[..] {
        [one] => format!("({one},)"),
        row => format!("({})", row.join(", ")),
    };
    rows.iter().map(tuple).collect()
}

/// Values of `impl Iterator<Item = T>`; there is no plain value of any other `impl`.
fn iterators(traits: &TypeImplTrait, text: &dyn Fn(&Type) -> String) -> Vec<String> {
    let item = traits.bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let last = bound.path.segments.last().filter(|last| last.ident == "Iterator")?;
        let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(assigned) if assigned.ident == "Item" => Some(&assigned.ty),
            _ => None,
        })
    });
    let Some(item) = item else { return Vec::new() };
    let once = each(item, text, |value| format!("::core::iter::once({value})"));
    std::iter::once("::core::iter::empty()".to_owned()).chain(once).collect()
}

/// The types among the arguments of a path.
fn types(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return Vec::new() };
    let each = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    each.collect()
}
