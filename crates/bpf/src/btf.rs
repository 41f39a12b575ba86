//! Reads BTF, the type information of the kernel (Documentation/bpf/btf.rst). One pass finds the types that have
//! given names. [`Btf::extract`] copies some of them, and the types of their members, into a smaller BTF.
//!
//! For each type that the BPF programs read, libbpf searches by name among more than 100,000 types of the kernel. The
//! copy has less than a twentieth as many.

use std::collections::HashMap;

/// The magic number with which BTF data begins.
const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
/// The size in bytes of the part of a BTF type that all kinds of types have in common.
const TYPE: usize = 12;

/// The kinds of BTF types (`BTF_KIND_*`).
pub(crate) mod kind {
    pub(crate) const INT: u32 = 1;
    pub(crate) const PTR: u32 = 2;
    pub(crate) const ARRAY: u32 = 3;
    pub(crate) const STRUCT: u32 = 4;
    pub(crate) const UNION: u32 = 5;
    pub(crate) const ENUM: u32 = 6;
    pub(crate) const FWD: u32 = 7;
    pub(crate) const TYPEDEF: u32 = 8;
    pub(crate) const VOLATILE: u32 = 9;
    pub(crate) const CONST: u32 = 10;
    pub(crate) const RESTRICT: u32 = 11;
    pub(crate) const FUNC: u32 = 12;
    pub(crate) const FUNC_PROTO: u32 = 13;
    pub(crate) const VAR: u32 = 14;
    pub(crate) const DATASEC: u32 = 15;
    pub(crate) const FLOAT: u32 = 16;
    pub(crate) const DECL_TAG: u32 = 17;
    pub(crate) const TYPE_TAG: u32 = 18;
    pub(crate) const ENUM64: u32 = 19;
}

/// The number (id) of a type in BTF; 0 is void.
pub(crate) type Id = u32;

/// BTF, mostly that of the kernel, with an index of the types whose names the caller of [`Btf::find`] has given.
pub(crate) struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// The offsets in bytes, in `types`, at which the types of the BTF begin. The first offset is that of the type with
    /// the id 1.
    places: Vec<u32>,
    named: HashMap<&'a [u8], Vec<Id>>,
}

/// A type in BTF. Its kind determines what `target` and `rest` mean.
#[derive(Clone, Copy)]
pub(crate) struct Type<'a> {
    name: u32,
    info: u32,
    /// The size of the BTF type in bytes, or the id of another type that it refers to.
    pub(crate) target: u32,
    rest: &'a [u8],
}

impl<'a> Type<'a> {
    pub(crate) fn kind(&self) -> u32 {
        self.info >> 24 & 0x1f
    }

    /// The entries that follow the common part of a BTF type, such as the members of a struct or the parameters of a
    /// function. `N` is the length of such an entry in words of 32 bits, which the kind of the type determines.
    pub(crate) fn parts<const N: usize>(&self) -> impl Iterator<Item = [u32; N]> + 'a {
        self.rest
            .chunks_exact(4 * N)
            .map(|part| std::array::from_fn(|at| word(part, 4 * at).unwrap_or(0)))
    }

    /// The offset in bits of a member of this struct; `None` for a bitfield. `offset` is the word that BTF stores for
    /// the member. This word can also contain the size of a bitfield.
    pub(crate) fn bits(&self, offset: u32) -> Option<u32> {
        match (self.info >> 31, offset >> 24) {
            (0, _) => Some(offset),
            (_, size) => (size == 0).then_some(offset),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

/// The number of bytes that follow the common part of a BTF type. `info` is the word of the common part that has
/// the kind of the type and the number of its members. `None` for an unknown kind.
fn added(info: u32) -> Option<usize> {
    use kind::*;
    let many = (info & 0xffff) as usize;
    Some(match info >> 24 & 0x1f {
        PTR | FWD | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNC | FLOAT | TYPE_TAG => 0,
        INT | VAR | DECL_TAG => 4,
        ARRAY => 12,
        STRUCT | UNION | DATASEC | ENUM64 => 12 * many,
        ENUM | FUNC_PROTO => 8 * many,
        _ => return None,
    })
}

/// The string that begins at the offset `at` of BTF's strings and ends with a zero byte.
fn string(strings: &[u8], at: u32) -> &[u8] {
    let from = strings.get(at as usize..).unwrap_or_default();
    from.split(|byte| *byte == 0).next().unwrap_or_default()
}

impl<'a> Btf<'a> {
    /// Indexes all types in the BTF `bytes` that have one of the given names. `None` if a name is shorter than two
    /// bytes, or if the bytes are no BTF, are cut off, or have another version or an unknown kind of type.
    pub(crate) fn find(bytes: &'a [u8], names: impl Iterator<Item = &'a [u8]>) -> Option<Btf<'a>> {
        let (magic, form) = (bytes.first_chunk()?, bytes.get(2)?);
        if u16::from_ne_bytes(*magic) != MAGIC || *form != 1 {
            return None;
        }
        let body = bytes.get(word(bytes, 4)? as usize..)?;
        let part = |at: usize| {
            let (from, len) = (word(bytes, at)? as usize, word(bytes, at + 4)? as usize);
            body.get(from..from.checked_add(len)?)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut named: HashMap<&[u8], Vec<Id>> = names.map(|name| (name, Vec::new())).collect();
        // A hash of the first three characters (the third is 0 in a name of two) quickly rules out most names.
        let mut begins = vec![false; 1 << 16];
        let begin = |name: &[u8]| {
            let two = u16::from_ne_bytes(*name.first_chunk()?);
            let third = name.get(2).copied().unwrap_or(0);
            Some(usize::from(two ^ u16::from(third) << 4))
        };
        for name in named.keys() {
            *begins.get_mut(begin(name)?)? = true;
        }
        let (mut places, mut at) = (Vec::with_capacity(types.len() / 28), 0);
        while at < types.len() {
            let (name, info) = (word(types, at)?, word(types, at + 4)?);
            places.push(u32::try_from(at).ok()?);
            let starts = || begin(strings.get(name as usize..)?);
            if name != 0 && starts().is_some_and(|start| begins.get(start) == Some(&true)) {
                if let Some(ids) = named.get_mut(string(strings, name)) {
                    ids.push(u32::try_from(places.len()).ok()?);
                }
            }
            at += TYPE + added(info)?;
        }
        Some(Btf {
            types,
            strings,
            places,
            named,
        })
    }

    /// The BTF type with the number `id`; `None` if there is none.
    pub(crate) fn get(&self, id: Id) -> Option<Type<'a>> {
        let place = *self.places.get((id as usize).checked_sub(1)?)? as usize;
        let info = word(self.types, place + 4)?;
        let rest = place + TYPE;
        Some(Type {
            name: word(self.types, place)?,
            info,
            target: word(self.types, place + 8)?,
            rest: self.types.get(rest..rest.checked_add(added(info)?)?)?,
        })
    }

    /// Whether this BTF marks any function as global (`BTF_FUNC_GLOBAL`).
    pub(crate) fn has_global_functions(&self) -> bool {
        const GLOBAL: u32 = 1;
        let info = |place: &u32| word(self.types, *place as usize + 4);
        let mut all = self.places.iter().filter_map(info);
        all.any(|info| info >> 24 & 0x1f == kind::FUNC && info & 0xffff == GLOBAL)
    }

    /// The numbers of all BTF types with this name, which must be one of the indexed names.
    fn all(&self, name: &str) -> &[Id] {
        self.named.get(name.as_bytes()).map_or(&[], Vec::as_slice)
    }

    /// The number of the first BTF type with this name and kind. The name must be one of the indexed names.
    pub(crate) fn id(&self, name: &str, kind: u32) -> Option<Id> {
        let mut ids = self.all(name).iter().copied();
        ids.find(|id| self.get(*id).is_some_and(|found| found.kind() == kind))
    }

    /// The first BTF type with this name and kind. The name must be one of the indexed names.
    pub(crate) fn named(&self, name: &str, kind: u32) -> Option<Type<'a>> {
        self.get(self.id(name, kind)?)
    }

    /// The name of a BTF type or member, by the offset `at` of the name in BTF's strings; empty if it has no
    /// name.
    pub(crate) fn name(&self, at: u32) -> &'a [u8] {
        string(self.strings, at)
    }

    /// The name of the BTF type with the number `id`; empty if it has none.
    pub(crate) fn name_of(&self, id: Id) -> &'a [u8] {
        self.get(id).map_or(&[], |found| self.name(found.name))
    }

    /// The BTF type with the number `id`, or the type that remains when typedefs and qualifiers such as `const`
    /// are removed from it.
    pub(crate) fn plain(&self, mut id: Id) -> Option<Type<'a>> {
        use kind::*;
        // The number of steps is limited, because typedefs can form a circle in hostile or broken BTF.
        for _ in 0..32 {
            let found = self.get(id)?;
            match found.kind() {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => id = found.target,
                _ => return Some(found),
            }
        }
        None
    }

    /// Makes a BTF that has only the structs, unions and enums with the given names, which must be indexed, and the
    /// types that their members need. In this copy, all pointers point to void. The added enum `kernel_type_id` has
    /// the numbers of the named structs in the original BTF.
    pub(crate) fn extract(&self, names: &[&str]) -> Option<Vec<u8>> {
        use kind::*;
        let mut copy = Copy::new(self);
        for name in names {
            for id in self.all(name) {
                if matches!(self.get(*id)?.kind(), STRUCT | UNION | ENUM | ENUM64) {
                    copy.place(*id);
                }
            }
        }
        let mut at = 0;
        while let Some(id) = copy.ids.get(at) {
            copy.add(self.get(*id)?);
            at += 1;
        }
        let number = |name: &&str| Some((format!("ID_{name}"), self.id(name, STRUCT)?));
        copy.number(names.iter().filter_map(number).collect());
        copy.finish()
    }
}

/// Appends a string to the strings of a BTF copy. Returns its offset in bytes.
fn put(strings: &mut Vec<u8>, name: &[u8]) -> u32 {
    let place = strings.len() as u32;
    strings.extend_from_slice(name);
    strings.push(0);
    place
}

/// A BTF that is being built from copies of some types of another BTF.
struct Copy<'b, 'a> {
    from: &'b Btf<'a>,
    /// The numbers in the original BTF of the types that are or will be copied. The type with the number n in the
    /// copy is at the index n - 1.
    ids: Vec<Id>,
    places: HashMap<Id, Id>,
    types: Vec<u8>,
    strings: Vec<u8>,
    names: HashMap<u32, u32>,
}

impl<'b, 'a> Copy<'b, 'a> {
    fn new(from: &'b Btf<'a>) -> Copy<'b, 'a> {
        Copy {
            from,
            ids: Vec::new(),
            places: HashMap::new(),
            types: Vec::new(),
            strings: vec![0],
            names: HashMap::new(),
        }
    }

    /// Returns the number that a type of the original BTF gets in the copy, and marks the type to be copied.
    fn place(&mut self, id: Id) -> Id {
        if id == 0 {
            return 0;
        }
        let ids = &mut self.ids;
        *self.places.entry(id).or_insert_with(|| {
            ids.push(id);
            ids.len() as Id
        })
    }

    fn name(&mut self, at: u32) -> u32 {
        if at == 0 {
            return 0;
        }
        let (from, strings) = (self.from, &mut self.strings);
        let names = self.names.entry(at);
        *names.or_insert_with(|| put(strings, from.name(at)))
    }

    /// Adds the enum `kernel_type_id` to the BTF copy. It has the names of some types, and their numbers in the
    /// original BTF.
    fn number(&mut self, ids: Vec<(String, Id)>) {
        let name = put(&mut self.strings, b"kernel_type_id");
        self.words(&[name, kind::ENUM << 24 | ids.len() as u32, 4]);
        for (name, id) in ids {
            let name = put(&mut self.strings, name.as_bytes());
            self.words(&[name, id]);
        }
    }

    fn words(&mut self, words: &[u32]) {
        for word in words {
            self.types.extend_from_slice(&word.to_ne_bytes());
        }
    }

    /// Adds a copy of a type to the BTF copy. The types must be added in the order of their numbers in the copy.
    fn add(&mut self, original: Type<'a>) {
        use kind::*;
        let name = self.name(original.name);
        match original.kind() {
            INT | FWD | FLOAT | ENUM | ENUM64 | STRUCT | UNION => {
                self.words(&[name, original.info, original.target]);
            }
            TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => {
                let target = self.place(original.target);
                self.words(&[name, original.info, target]);
            }
            ARRAY => self.words(&[0, original.info, 0]),
            // The only other kind of type that a member of a struct can have is a pointer. Its copy points to
            // void.
            _ => self.words(&[0, PTR << 24, 0]),
        }
        match original.kind() {
            INT => original.parts::<1>().for_each(|part| self.words(&part)),
            ENUM => original.parts().for_each(|[name, value]| {
                let name = self.name(name);
                self.words(&[name, value]);
            }),
            ENUM64 => original.parts().for_each(|[name, low, high]| {
                let name = self.name(name);
                self.words(&[name, low, high]);
            }),
            STRUCT | UNION => original.parts().for_each(|[name, member, offset]| {
                let (name, member) = (self.name(name), self.place(member));
                self.words(&[name, member, offset]);
            }),
            ARRAY => original.parts().for_each(|[element, _, count]| {
                let element = self.place(element);
                self.words(&[element, 0, count]);
            }),
            _ => {}
        }
    }

    fn finish(self) -> Option<Vec<u8>> {
        let (types, strings) = (self.types.len(), self.strings.len());
        let lengths = [0, types, types, strings].map(|length| u32::try_from(length).ok());
        let mut bytes = Vec::with_capacity(HEADER + types + strings);
        bytes.extend_from_slice(&MAGIC.to_ne_bytes());
        bytes.extend_from_slice(&[1, 0]);
        for word in std::iter::once(Some(HEADER as u32)).chain(lengths) {
            bytes.extend_from_slice(&word?.to_ne_bytes());
        }
        bytes.extend(self.types);
        bytes.extend(self.strings);
        Some(bytes)
    }
}

#[cfg(test)]
#[path = "tests/btf.rs"]
mod tests;
