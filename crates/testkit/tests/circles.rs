//! Checks that no two files of a crate use each other, directly or through others. So a reader can begin with the files
//! that use no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

/// The path of a module in its crate; empty for the root.
type Module = Vec<String>;

/// The names in a module.
#[derive(Default)]
struct Names {
    /// The file that has the module.
    file: PathBuf,
    /// The modules that it contains.
    children: BTreeSet<String>,
    /// The names that it imports or re-exports, each with its path.
    imports: BTreeMap<String, Module>,
    /// The modules from which it imports all names.
    globs: Vec<Module>,
    /// The paths that its code names, as paths from the root of the crate.
    uses: Vec<Module>,
}

/// The modules of a crate.
#[derive(Default)]
struct Tree(BTreeMap<Module, Names>);

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl Tree {
    fn read(root: &Path) -> Tree {
        let mut tree = Tree::default();
        tree.file(root, Vec::new(), root.parent().expect("a folder"));
        tree
    }

    /// Reads the file of a module. The modules that it declares without a body are in `folder`.
    fn file(&mut self, path: &Path, module: Module, folder: &Path) {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.items(&file.items, path, module, folder);
    }

    fn items(&mut self, items: &[Item], path: &Path, module: Module, folder: &Path) {
        let mut names = Names { file: path.to_owned(), ..Names::default() };
        let mut below = Vec::new();
        for item in items {
            match item {
                Item::Mod(inner) if !is_test(&inner.attrs) => {
                    names.children.insert(inner.ident.to_string());
                    below.push(inner);
                }
                Item::Mod(_) => {}
                Item::Use(item) if !is_test(&item.attrs) => names.take(item, &module),
                Item::Use(_) => {}
                other => Paths { module: &module, found: &mut names.uses }.visit_item(other),
            }
        }
        self.0.insert(module.clone(), names);
        for inner in below {
            self.below(inner, path, &module, folder);
        }
    }

    fn below(&mut self, inner: &ItemMod, path: &Path, module: &Module, folder: &Path) {
        let name = inner.ident.to_string();
        let module: Module = module.iter().cloned().chain([name.clone()]).collect();
        let own = folder.join(&name);
        match &inner.content {
            Some((_, items)) => self.items(items, path, module, &own),
            None if own.join("mod.rs").exists() => self.file(&own.join("mod.rs"), module, &own),
            None => self.file(&folder.join(format!("{name}.rs")), module, &own),
        }
    }

    /// Returns the file that defines what a path names; `None` for a path of another crate.
    fn definition(&self, path: &[String]) -> Option<&Path> {
        let mut module = Module::new();
        for (at, name) in path.iter().enumerate() {
            let names = &self.0[&module];
            if names.children.contains(name) {
                module.push(name.clone());
                continue;
            }
            let rest = &path[at + 1..];
            if let Some(import) = names.imports.get(name) {
                // An import that names itself is a crate, imported under its own name.
                let further: Vec<_> = import.iter().chain(rest).cloned().collect();
                return if further == path { None } else { self.definition(&further) };
            }
            return Some(&names.file);
        }
        self.0.get(&module).map(|names| names.file.as_path())
    }

    /// Returns the files that each file uses.
    fn arrows(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut arrows: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for names in self.0.values() {
            let used = names.uses.iter().chain(&names.globs).filter_map(|path| self.definition(path));
            arrows.entry(&names.file).or_default().extend(used.filter(|file| *file != names.file));
        }
        arrows
    }
}

impl Names {
    /// Reads a `use`. A re-export does not count as a use.
    fn take(&mut self, item: &ItemUse, module: &Module) {
        let passes_on = !matches!(item.vis, Visibility::Inherited);
        self.tree(&item.tree, Vec::new(), module, passes_on);
    }

    fn tree(&mut self, tree: &UseTree, mut path: Module, module: &Module, passes_on: bool) {
        match tree {
            UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.tree(&inner.tree, path, module, passes_on);
            }
            UseTree::Group(group) => {
                for inner in &group.items {
                    self.tree(inner, path.clone(), module, passes_on);
                }
            }
            UseTree::Name(name) if name.ident == "self" => self.import(path, None, module, passes_on),
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.import(path, None, module, passes_on);
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    path.push(rename.ident.to_string());
                }
                self.import(path, Some(rename.rename.to_string()), module, passes_on);
            }
            UseTree::Glob(_) => {
                if let Some(path) = self.absolute(&path, module) {
                    self.globs.push(path);
                }
            }
        }
    }

    fn import(&mut self, path: Module, renamed: Option<String>, module: &Module, passes_on: bool) {
        let Some(absolute) = self.absolute(&path, module) else { return };
        if !passes_on {
            self.uses.push(absolute.clone());
        }
        if let Some(name) = renamed.or_else(|| absolute.last().cloned()) {
            self.imports.insert(name, absolute);
        }
    }

    /// Returns a path from the root of the crate; `None` for a path of another crate.
    fn absolute(&self, path: &[String], module: &Module) -> Option<Module> {
        absolute(path, module, |name| self.children.contains(name))
    }
}

fn absolute(path: &[String], module: &Module, is_child: impl Fn(&str) -> bool) -> Option<Module> {
    let first = path.first()?.as_str();
    let up = path.iter().take_while(|name| *name == "super").count();
    match first {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some(module.iter().chain(&path[1..]).cloned().collect()),
        "super" => {
            let base = &module[..module.len().checked_sub(up)?];
            Some(base.iter().chain(&path[up..]).cloned().collect())
        }
        _ if is_child(first) => Some(module.iter().chain(path).cloned().collect()),
        _ => None,
    }
}

/// Finds the paths that code names in full.
struct Paths<'a> {
    module: &'a Module,
    found: &'a mut Vec<Module>,
}

impl Paths<'_> {
    /// Finds paths from the root of the crate in the arguments of a macro or an attribute, which need not be Rust.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Module::new();
        let mut ends = |path: &mut Module| {
            if path.len() > 1 {
                self.found.push(path[1..].to_vec());
            }
            path.clear();
        };
        let mut inner = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Ident(name) if name == "crate" => {
                    ends(&mut path);
                    path.push(name.to_string());
                }
                TokenTree::Ident(name) if !path.is_empty() => path.push(name.to_string()),
                TokenTree::Punct(sign) if sign.as_char() == ':' => {}
                TokenTree::Group(group) => {
                    ends(&mut path);
                    inner.push(group.stream());
                }
                _ => ends(&mut path),
            }
        }
        ends(&mut path);
        for tokens in inner {
            self.tokens(tokens);
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Module = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        // A single name was imported, is defined in this file, or belongs to a visibility.
        if names.len() > 1 {
            self.found.extend(absolute(&names, self.module, |_| true));
        }
        syn::visit::visit_path(self, path);
    }

    /// Where an item can be seen from is no use of that place.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        syn::visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.tokens(list.tokens.clone());
        syn::visit::visit_meta_list(self, list);
    }
}

/// Returns the circles. Each lists its files with the files of the circle that they use.
fn circles(root: &Path) -> Vec<Vec<String>> {
    let tree = Tree::read(root);
    let arrows = tree.arrows();
    let reaches = |from: &Path| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            for used in arrows.get(file).into_iter().flatten() {
                if seen.insert(*used) {
                    next.push(used);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        arrows.keys().map(|file| (*file, reaches(file))).collect();
    let shown = |file: &Path| {
        file.strip_prefix(root.parent().expect("a folder")).unwrap_or(file).display().to_string()
    };
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut done = BTreeSet::new();
    for (file, far) in &reached {
        if !far.contains(file) || !done.insert(*file) {
            continue;
        }
        let circle: Vec<_> = far.iter().copied().filter(|other| reached[other].contains(file)).collect();
        done.extend(&circle);
        let arrow = |from: &&Path| {
            let to: Vec<_> =
                arrows[from].iter().filter(|to| circle.contains(to)).map(|to| shown(to)).collect();
            format!("{} uses {}", shown(from), to.join(", "))
        };
        found.push(circle.iter().map(arrow).collect());
    }
    found
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(&crates).expect("the crates").map(|entry| entry.expect("an entry").path())
    {
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| entry.join(root));
        let found: Vec<_> =
            roots.iter().filter(|root| root.exists()).flat_map(|root| circles(root)).collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn a_circle_is_found_where_there_is_one() {
    let folder = std::env::temp_dir().join(format!("dateline-circles-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("written");
    };
    write("lib.rs", "mod a; mod b; mod c; pub use a::A;");
    write("a.rs", "mod below; use crate::b::B; pub struct A;");
    write("a/below.rs", "pub(in crate::a) fn f() { crate::c::g() }");
    write("b.rs", "#[derive(Args)] pub struct B(#[arg(value_parser = crate::a::read)] u8);");
    write("c.rs", "pub fn g() {} #[cfg(test)] mod tests { use crate::A; }");
    let found = circles(&folder.join("lib.rs"));
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(found, [["a.rs uses b.rs", "b.rs uses a.rs"]]);
}
