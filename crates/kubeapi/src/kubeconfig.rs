//! Reads kubeconfig files like [`Kubeconfig::read_from`], with the types of kube, but with `dynserde`: a parser of YAML
//! for each of these types would be large.

use std::io;
use std::path::{MAIN_SEPARATOR, Path};

use kube::config::{AuthInfo, Kubeconfig, KubeconfigError};

/// Reads a file. It may have several documents, of which the first one with a value wins. The files that it names are
/// relative to its folder.
pub(crate) fn read(file: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let text = std::fs::read(file).and_then(text).map_err(|error| KubeconfigError::ReadConfig(error, file.into()))?;
    let documents = dynserde::yaml_documents::<Kubeconfig>(&text);
    let documents = documents.map_err(|error| KubeconfigError::Parse(Box::new(error)))?;
    let mut merged: Option<Kubeconfig> = None;
    for mut document in documents {
        if let Some(folder) = file.parent() {
            make_absolute(&mut document, folder);
        }
        merged = Some(match merged {
            Some(before) => before.merge(document)?,
            None => document,
        });
    }
    Ok(merged.unwrap_or_default())
}

/// Decodes UTF-8 or, after a byte order mark, UTF-16, which editors of Windows write.
fn text(bytes: Vec<u8>) -> io::Result<String> {
    let invalid = |encoding| io::Error::new(io::ErrorKind::InvalidData, format!("Invalid {encoding}"));
    match bytes.as_slice() {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes).ok_or_else(|| invalid("UTF-16 LE")),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes).ok_or_else(|| invalid("UTF-16 BE")),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8(rest.to_vec()).map_err(|_| invalid("UTF-8 BOM")),
        _ => String::from_utf8(bytes).map_err(|_| invalid("UTF-8")),
    }
}

fn utf16(bytes: &[u8], number: fn([u8; 2]) -> u16) -> Option<String> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    String::from_utf16(&units.iter().copied().map(number).collect::<Vec<_>>()).ok()
}

/// Makes the names of files absolute.
fn make_absolute(config: &mut Kubeconfig, folder: &Path) {
    for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        join(folder, &mut cluster.certificate_authority);
    }
    for user in config.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        let AuthInfo { client_certificate, client_key, token_file, exec, .. } = user;
        [client_certificate, client_key, token_file].into_iter().for_each(|file| join(folder, file));
        // Like client-go: a command without a separator is searched for in PATH.
        let command = exec.as_mut().map(|exec| &mut exec.command);
        if let Some(command) = command
            && command.as_ref().is_some_and(|command| command.contains(MAIN_SEPARATOR))
        {
            join(folder, command);
        }
    }
}

/// Prepends a folder to a relative file name.
fn join(folder: &Path, file: &mut Option<String>) {
    let relative = file.as_ref().filter(|file| Path::new(file).is_relative());
    if let Some(joined) = relative.and_then(|file| folder.join(file).to_str().map(str::to_owned)) {
        *file = Some(joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kubeconfigs, valid and invalid. The environment of a command has one variable, since kube stores several in a
    /// `HashMap`, whose order is random.
    const FILES: [&str; 12] = [
        "",
        "~\n",
        "clusters: {",
        "clusters: [{name: a, cluster: {server: 7}}]\n",
        "clusters:\n- name: a\n  cluster:\n    insecure-skip-tls-verify: yes\n",
        "clusters:\n- cluster: {server: x}\n",
        "current-context: a\ncurrent-context: b\n",
        "users: [{name: u, user: {token: 1_000, client-key-data: null, unknown: {a: 1.5}}}]\n",
        "users: [{name: u, user: {exec: {command: ./x, args: [1], interactiveMode: Sometimes}}}]\n",
        "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {certificate-authority: ca.pem, server: x}}]\n\
         users:\n- name: u\n  user: {client-certificate: /c.pem, client-key: k.pem, tokenFile: t,\n    \
         exec: {command: bin/x, env: [{name: A}], interactiveMode: Never}}\n\
         contexts: [{name: c, context: {cluster: a, user: u, namespace: n}}]\ncurrent-context: c\nother: [1]\n",
        "kind: Config\nusers: [{name: u, user: {exec: {command: x}}}]\n---\nkind: Config\n\
         users: [{name: u}, {name: v}]\ncurrent-context: c\n---\n",
        "kind: a\n---\nkind: b\n",
    ];

    fn shown(read: Result<Kubeconfig, KubeconfigError>) -> String {
        read.map_or_else(|error| format!("{error}: {error:?}"), |config| format!("{config:?}"))
    }

    #[test]
    fn reads_files_as_kube_does() {
        let folder = std::env::temp_dir().join(format!("kubeconfig-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("config");
        let utf16 = |from: fn(u16) -> [u8; 2], text: &str| text.encode_utf16().flat_map(from).collect::<Vec<u8>>();
        let encoded = [
            [&[0xFF, 0xFE][..], &utf16(u16::to_le_bytes, "kind: é\n")].concat(),
            [&[0xFE, 0xFF][..], &utf16(u16::to_be_bytes, "kind: é\n")].concat(),
            [&[0xFF, 0xFE][..], &[0x00, 0xD8]].concat(),
            b"\xEF\xBB\xBFkind: x\n".to_vec(),
            b"\xEF\xBB\xBF\xFF".to_vec(),
            b"\xFF".to_vec(),
        ];
        for bytes in FILES.iter().map(|text| text.as_bytes().to_vec()).chain(encoded) {
            std::fs::write(&file, &bytes).unwrap();
            assert_eq!(shown(read(&file)), shown(Kubeconfig::read_from(&file)), "{}", String::from_utf8_lossy(&bytes));
        }
        assert_eq!(shown(read(&folder)), shown(Kubeconfig::read_from(&folder)));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn refuses_half_a_utf16_unit() {
        for bytes in [[0xFF, 0xFE, 0x41], [0xFE, 0xFF, 0x41]] {
            assert_eq!(text(bytes.to_vec()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
