//! Tests that the copy of some of the kernel's BTF types equals the original types, as libbpf reads both.

use std::collections::BTreeMap;

use libbpf_rs::btf::types::{Composite, Enum, MemberAttr, Struct};
use libbpf_rs::btf::{Btf as Libbpf, BtfType, HasSize};

use super::*;
use crate::kernel::TYPES;
use crate::load::MemoryFile;

/// The members of a struct by their names, including those of anonymous structs and unions in it. For each: the offset
/// in bits, the size of a bitfield, the kind and the size in bytes.
fn members(btf: &Libbpf<'_>, of: &Composite<'_>, from: u32) -> BTreeMap<String, [u32; 4]> {
    let mut all = BTreeMap::new();
    for member in of.iter() {
        let (size, offset) = match member.attr {
            MemberAttr::Normal { offset } => (0, offset),
            MemberAttr::BitField { size, offset } => (u32::from(size), offset),
        };
        let named: BtfType<'_> = btf.type_by_id(member.ty).unwrap();
        let plain = named.skip_mods_and_typedefs();
        let inner = Composite::try_from(plain);
        match member.name {
            None => all.extend(members(btf, &inner.unwrap(), from + offset)),
            Some(name) => {
                let bytes = inner.map_or(0, |inner| inner.size() as u32);
                let facts = [from + offset, size, plain.kind() as u32, bytes];
                all.insert(name.to_string_lossy().into_owned(), facts);
            }
        }
    }
    all
}

#[test]
fn libbpf_reads_the_same_types_in_the_copy() {
    let Ok(kernel) = Libbpf::from_vmlinux() else {
        return;
    };
    let bytes = std::fs::read(crate::refusal::BTF).unwrap();
    let found = Btf::find(&bytes, TYPES.iter().map(|name| name.as_bytes())).unwrap();
    let file = MemoryFile::new(&found.extract(TYPES).unwrap()).unwrap();
    let copy = Libbpf::from_path(file.path()).unwrap();
    assert!(copy.len() < kernel.len() / 20, "{} types", copy.len());
    let ids: Enum<'_> = copy.type_by_name("kernel_type_id").unwrap();
    let ids: BTreeMap<String, i64> = ids
        .iter()
        .map(|row| (row.name.unwrap().to_string_lossy().into_owned(), row.value))
        .collect();
    let mut structs = 0;
    for name in TYPES {
        let own: Option<Struct<'_>> = kernel.type_by_name(name);
        let Some(own) = own else {
            assert!(copy.type_by_name::<Struct<'_>>(name).is_none(), "{name}");
            continue;
        };
        let other: Struct<'_> = copy.type_by_name(name).unwrap();
        assert_eq!(
            ids[&format!("ID_{name}")],
            i64::from(u32::from(own.type_id()))
        );
        let (own, other) = (Composite::from(own), Composite::from(other));
        assert_eq!(own.size(), other.size(), "{name}");
        let all = members(&kernel, &own, 0);
        assert_eq!(all, members(&copy, &other, 0), "{name}");
        structs += usize::from(!all.is_empty());
    }
    assert!(structs > 30, "{structs} structs");
}

#[test]
fn what_is_no_btf_is_refused() {
    fn whole(bytes: &[u8]) -> bool {
        Btf::find(bytes, TYPES.iter().map(|name| name.as_bytes())).is_some()
    }
    assert!(!whole(b""));
    let Ok(bytes) = std::fs::read(crate::refusal::BTF) else {
        return;
    };
    assert!(whole(&bytes));
    assert!(!whole(&bytes[..bytes.len() / 2]));
    let mut other = bytes;
    other[2] = 2;
    assert!(!whole(&other));
}
