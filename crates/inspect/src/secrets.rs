//! Corefile without secrets, for reports.
//!
//! Words that may be secret are replaced where they were written. Variables stay as they were written too, so that
//! their values do not show.

use corefile::Corefile;
use host::mask::masked_lines;
use process::secrets::Secrets;

/// Returns the files of a Corefile, each with its name and its text without secrets.
pub fn without_secrets(written: &Corefile) -> Vec<(String, String)> {
    // A report leaves the machine, so everything after a word that names a secret is removed too.
    let file = |(name, text): (&std::path::Path, String)| (name.display().to_string(), masked_lines(&text));
    Secrets::of(written).files().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_values_that_may_be_secret() {
        let text = "\
. {
    tsig {
        secret key. \"NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=\"
    }
    etcd {
        credentials user hunter2
        endpoint http://user:hunter3@10.0.0.1:2379 http://10.0.0.2:2379/a@b
    }
    on startup notify --token hunter4
    forward . {$UPSTREAM}
}
(unused) {
    tsig {
        secret key. hunter5
        sekret key hunter6
    }
}
# password: hunter6
";
        let parsed = corefile::parse("Corefile".as_ref(), text.to_owned(), &corefile::NoFiles);
        let files = without_secrets(&parsed.corefile);
        let expected = "\
. {
    tsig {
        secret [removed] [removed]
    }
    etcd {
        credentials [removed] [removed]
        endpoint http://[removed]@10.0.0.1:2379 http://10.0.0.2:2379/a@b
    }
    on startup notify [removed] [removed]
    forward . {$UPSTREAM}
}
(unused) {
    tsig {
        secret [removed] [removed]
        sekret [removed] [removed]
    }
}
# password: [removed]
";
        assert_eq!(files, [("Corefile".to_owned(), expected.to_owned())]);
    }
}
