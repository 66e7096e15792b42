//! Skills: folders of instructions for models, served by the extension of that name.

mod frontmatter;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proto::{CacheHint, Object, Raw, Rejection};
use serde_json::{Map, Value, json};
use server::{
    BuildError, Builder, CacheScope, Context, Definitions, Error, Extension, Resource, ResourceContents,
    Result,
};
use sha2::{Digest as _, Sha256};
use spec::skills::{
    DIRECTORY_READ, DIRECTORY_READ_SETTING, DIRECTORY_TYPE, GET, ID, LIST, MANIFEST, MANIFEST_TYPE,
    MOST_BYTES, MOST_FILES, SCHEME,
};

use crate::folder::{Entry, Folder, Found, encoded, kind};

/// The most folders within each other that are looked into.
const DEPTH: usize = 32;

/// Agent skills (<https://agentskills.io>), each a folder with a `SKILL.md`, served by the extension
/// `io.modelcontextprotocol/skills` to clients of 2026-07-28 and as resources to all.
///
/// A skill's URI is `skill://` and its path below the folder that was read, `skill://billing/refunds/SKILL.md`. The
/// `SKILL.md` of each is in `resources/list` with the name and description of its frontmatter; the other files are read
/// by whoever knows them from the skill. Skills may lie within others, and are then files of those too.
///
/// Files are read once, at the start. What changes on disk is served when the server is started again: a client
/// compares what it reads with the digests that it was told, so a skill must not change under it.
///
/// ```no_run
/// # use dateline::{Server, Skills};
/// let server = Server::new("helpful", "1.0.0").define(Skills::from_folder("./skills")?).build()?;
/// # Ok::<(), dateline::BuildError>(())
/// ```
///
/// <https://modelcontextprotocol.io/seps/2640-skills-extension#specification>
pub struct Skills {
    files: BTreeMap<String, File>,
    /// The folders that are skills, and what their frontmatter says.
    skills: BTreeMap<String, Map<String, Value>>,
    scope: CacheScope,
    ttl: Duration,
}

/// A file of a skill.
struct File {
    contents: ResourceContents,
    mime: String,
    size: usize,
    digest: String,
}

impl Skills {
    /// The skills below a folder: every folder in it that has a `SKILL.md`. Left out are files whose names begin with a
    /// dot, files that belong to no skill, and what links lead to where that is a folder or outside of this one.
    ///
    /// # Errors
    /// When a skill is not one that every client takes: it has more than 512 files or 16 MiB, its `SKILL.md` does not
    /// begin with YAML frontmatter, its name is not that of its folder; or when something cannot be read.
    pub fn from_folder(root: impl AsRef<Path>) -> Result<Skills, BuildError> {
        let root = root.as_ref();
        let folder = Folder::open(root, false)?;
        let mut files = BTreeMap::new();
        gather(&folder, "", None, 0, &mut files).map_err(|e| e.below(root))?;
        Skills::new(files).map_err(|e| e.below(root))
    }

    /// The skills of these files, by their paths with `/` between names: for those that are part of the program.
    ///
    /// ```
    /// # use dateline::Skills;
    /// let skill = "---\nname: greet\ndescription: How to greet.\n---\nSay hello.\n";
    /// let skills = Skills::from_files([("greet/SKILL.md", skill)])?;
    /// # Ok::<(), dateline::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Skills::from_folder`].
    pub fn from_files<P: Into<String>, C: Into<Vec<u8>>>(
        files: impl IntoIterator<Item = (P, C)>,
    ) -> Result<Skills, BuildError> {
        let mut all = BTreeMap::new();
        for (path, content) in files {
            let path = path.into();
            let plain = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains('\\');
            if !path.split('/').all(plain) {
                return Err(unusable(&path, "it is no path below a folder"));
            }
            if all.insert(path.clone(), content.into()).is_some() {
                return Err(BuildError::Duplicate { kind: "file", name: path });
            }
        }
        Skills::new(all)
    }

    /// Sets for how long, and for whom, clients may keep what they read. By default they may not keep it.
    #[must_use]
    pub fn cache(self, scope: CacheScope, ttl: Duration) -> Skills {
        Skills { scope, ttl, ..self }
    }

    fn new(contents: BTreeMap<String, Vec<u8>>) -> Result<Skills, BuildError> {
        let mut skills = BTreeMap::new();
        for (path, content) in &contents {
            let Some(folder) = skill_of(path) else { continue };
            let frontmatter = frontmatter::read(content).map_err(|why| unusable(path, why))?;
            frontmatter::check(&frontmatter, folder).map_err(|why| unusable(path, why))?;
            within_limits(folder, &contents)?;
            skills.insert(folder.to_owned(), frontmatter);
        }
        let of_a_skill = |path: &str| outwards(path).any(|folder| skills.contains_key(folder));
        let files = contents.into_iter().filter(|(path, _)| of_a_skill(path));
        let files = files.map(|(path, content)| (path.clone(), File::new(&path, content))).collect();
        Ok(Skills { files, skills, scope: CacheScope::Public, ttl: Duration::ZERO })
    }

    /// A skill as the extension tells it.
    fn entry(&self, folder: &str, frontmatter: &Map<String, Value>) -> Raw {
        let resources: Vec<Value> = below(&self.files, folder)
            .map(|(path, file)| json!({"uri": uri(path), "digest": file.digest, "size": file.size}))
            .collect();
        let uri = uri(&format!("{folder}/{MANIFEST}"));
        Raw::of(&json!({"uri": uri, "frontmatter": frontmatter, "resources": resources}))
    }

    /// What is in each folder, by its URI.
    fn folders(&self) -> BTreeMap<String, Vec<Raw>> {
        let mut children: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
        for (path, file) in &self.files {
            let (mut below, mut name) = path.rsplit_once('/').unwrap_or(("", path));
            let mut child = json!({"uri": uri(path), "name": name, "mimeType": file.mime, "size": file.size});
            if let Some(frontmatter) = skill_of(path).and_then(|folder| self.skills.get(folder)) {
                child["name"] = frontmatter["name"].clone();
                child["description"] = frontmatter["description"].clone();
            }
            while !below.is_empty() {
                children.entry(below).or_default().insert(name, child);
                child = json!({"uri": uri(below), "mimeType": DIRECTORY_TYPE});
                (below, name) = below.rsplit_once('/').unwrap_or(("", below));
                child["name"] = json!(name);
            }
        }
        let raws = |children: BTreeMap<&str, Value>| children.values().map(Raw::of).collect();
        children.into_iter().map(|(folder, children)| (uri(folder), raws(children))).collect()
    }
}

impl Definitions for Skills {
    fn add_to(self, mut server: Builder) -> Builder {
        let hint = self.scope.hint(self.ttl);
        let entries = self.skills.iter().map(|(folder, said)| {
            let uri = uri(&format!("{folder}/{MANIFEST}"));
            (uri, self.entry(folder, said))
        });
        let entries: Arc<BTreeMap<String, Raw>> = Arc::new(entries.collect());
        let folders = Arc::new(self.folders());
        for (path, file) in self.files {
            let name = path.rsplit('/').next().unwrap_or_default();
            let frontmatter = skill_of(&path).and_then(|folder| self.skills.get(folder));
            let said = |member: &str| frontmatter?.get(member)?.as_str();
            let mut resource = Resource::fixed(said("name").unwrap_or(name), file.contents)
                .with("size", file.size)
                .cache(self.scope, self.ttl);
            resource = match said("description") {
                Some(description) => resource.description(description),
                None => resource.unlisted(),
            };
            server = server.resource(resource);
        }
        let all = Arc::clone(&entries);
        let list = move |cx: Context| {
            let page = cx.page("skills", all.values()).map(|page| hinted(page, hint));
            std::future::ready(page)
        };
        let get = move |cx: Context| {
            let found = named(&cx).and_then(|uri| {
                let entry = entries.get(&uri).cloned();
                entry.ok_or_else(|| wrong(format!("no skill is served at {}", clipped(&uri))))
            });
            std::future::ready(found.map(|entry| hinted(Object::new().with("skill", entry), hint)))
        };
        let directory = move |cx: Context| {
            let found = named(&cx).and_then(|uri| match folders.get(&uri) {
                Some(children) => cx.page("resources", children),
                None => Err(wrong(format!("{} is no folder that is served", clipped(&uri)))),
            });
            std::future::ready(found)
        };
        server.extension(
            Extension::new(ID)
                .settings(json!({DIRECTORY_READ_SETTING: true}))
                .open_method(LIST, list)
                .open_method(GET, get)
                .open_method(DIRECTORY_READ, directory),
        )
    }
}

impl File {
    fn new(path: &str, content: Vec<u8>) -> File {
        let (size, digest) = (content.len(), format!("sha256:{:x}", Sha256::digest(&content)));
        let (mut mime, content) = kind(path, content);
        if skill_of(path).is_some() {
            MANIFEST_TYPE.clone_into(&mut mime);
        }
        let contents = match content {
            Ok(text) => ResourceContents::text(&uri(path), &mime, text),
            Err(bytes) => ResourceContents::blob(&uri(path), &mime, bytes),
        };
        File { contents, mime, size, digest }
    }
}

fn hinted(mut result: Object, hint: CacheHint) -> Object {
    proto::project::hint(&mut result, hint);
    result
}

/// The URI that is asked for.
fn named(cx: &Context) -> Result<String> {
    let uri = cx.arguments().object().ok().and_then(|params| params.string("uri"));
    uri.map(|uri| uri.to_string()).ok_or_else(|| wrong("\"uri\" is required, and must be a string".into()))
}

fn wrong(why: String) -> Error {
    Error::reject(Rejection::Params(why))
}

fn clipped(uri: &str) -> String {
    proto::clipped(uri, 200)
}

fn uri(path: &str) -> String {
    format!("{SCHEME}{}", encoded(path))
}

/// The folder of the skill that a file makes of it.
fn skill_of(path: &str) -> Option<&str> {
    path.strip_suffix(MANIFEST)?.strip_suffix('/')
}

/// The folders that something lies in, the innermost first.
fn outwards(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(outer, _)| outer)).skip(1)
}

/// What is below a folder.
fn below<'a, T>(files: &'a BTreeMap<String, T>, folder: &str) -> impl Iterator<Item = (&'a String, &'a T)> {
    let begin = format!("{folder}/");
    files.range(begin.clone()..).take_while(move |(path, _)| path.starts_with(&begin))
}

fn within_limits(folder: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<(), BuildError> {
    if below(files, folder).count() > MOST_FILES {
        return Err(unusable(folder, format!("the skill has more than {MOST_FILES} files")));
    }
    if below(files, folder).map(|(_, content)| content.len() as u64).sum::<u64>() > MOST_BYTES {
        return Err(too_large(folder));
    }
    Ok(())
}

fn too_large(folder: &str) -> BuildError {
    unusable(folder, format!("the skill has more than {} MiB", MOST_BYTES >> 20))
}

/// An error of a file or folder, by its path below the folder of the skills.
fn unusable(path: &str, reason: impl Into<String>) -> BuildError {
    BuildError::File { path: path.into(), reason: reason.into() }
}

/// Reads the files of skills below a folder; `skill` is the outermost skill that it is part of.
fn gather(
    root: &Folder,
    path: &str,
    skill: Option<&str>,
    depth: usize,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), BuildError> {
    if depth > DEPTH {
        return Err(unusable(path, format!("it lies more than {DEPTH} folders deep")));
    }
    let Found::Folder(entries, more) = root.find(path, 0, usize::MAX) else {
        return Err(unusable(path, "it cannot be read"));
    };
    if more {
        return Err(unusable(path, "the folder has too many files"));
    }
    let skill = skill.or_else(|| entries.iter().any(|entry| entry.name == MANIFEST).then_some(path));
    if skill == Some("") {
        return Err(unusable(MANIFEST, "it must be in a folder of the skill's name"));
    }
    for Entry { name, folder, link } in entries {
        let below = if path.is_empty() { name } else { format!("{path}/{name}") };
        if folder {
            // A link could lead to what it lies in.
            if link {
                continue;
            }
            gather(root, &below, skill, depth + 1, files)?;
            continue;
        }
        let Some(skill) = skill else { continue };
        match root.find(&below, MOST_BYTES, 0) {
            Found::File(content) => files.insert(below, content),
            Found::TooLarge => return Err(too_large(skill)),
            _ => return Err(unusable(&below, "it cannot be read")),
        };
        within_limits(skill, files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
