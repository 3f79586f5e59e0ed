//! Diagnostic codes of this crate.

crate::codes! {
    UNCLOSED_QUOTE = "corefile/unclosed-quote": "a quoted word is never closed";
    GLUED_BRACE = "corefile/glued-brace": "a brace is part of a word";
    TYPOGRAPHIC_QUOTE = "corefile/typographic-quote": "a typographic quote, which is an ordinary character";
    UNSET_VARIABLE = "corefile/unset-variable": "an environment variable is not set";
    ENDLESS_VARIABLE = "corefile/endless-variable": "a variable refers to itself";
    TOO_MUCH_TEXT = "corefile/too-much-text": "the text is too long after imports and variables";
    FILE_TOO_LARGE = "corefile/file-too-large": "the Corefile and its imports are too long";
    TOO_MANY_PROBLEMS = "corefile/too-many-problems": "there are more problems than are shown";
    EXTRA_COMMA = "corefile/extra-comma": "a comma that no key follows";
    NO_SERVER_BLOCK = "corefile/no-server-block": "a Corefile without server blocks serves nothing";
    BLOCK_WITHOUT_KEYS = "corefile/block-without-keys": "a server block serves nothing";
    STRAY_BRACE = "corefile/stray-brace": "a closing brace without an opening one";
    UNCLOSED_BLOCK = "corefile/unclosed-block": "a block is never closed";
    BRACE_IN_LINE = "corefile/brace-in-line": "a closing brace after other words";
    WORD_BEHIND_BLOCK = "corefile/word-behind-block": "a word after the closing brace of a directive";
    NESTED_BLOCK = "corefile/nested-block": "a block inside the block of a directive";
    BRACE_ALONE = "corefile/brace-alone": "the opening brace of a directive on a separate line";
    SNIPPET_WITHOUT_BRACES = "corefile/snippet-without-braces": "a snippet without braces";
    SNIPPET_REDEFINED = "corefile/snippet-redefined": "a snippet is defined twice";
    IMPORT_ARGUMENTS = "corefile/import-arguments": "`import` without an argument, or with more than one";
    IMPORT_EMPTY = "corefile/import-empty": "the argument of `import` is empty";
    IMPORT_PATTERN = "corefile/import-pattern": "an import pattern with too many wildcards";
    IMPORT_WITHOUT_MATCH = "corefile/import-without-match": "no file matches an import pattern";
    IMPORT_NOT_FOUND = "corefile/import-not-found": "neither a snippet nor a file of the imported name";
    IMPORT_UNREADABLE = "corefile/import-unreadable": "an imported file cannot be read";
    IMPORT_LOOP = "corefile/import-loop": "a text imports itself";
    IMPORT_TOO_DEEP = "corefile/import-too-deep": "imports are nested too deeply";
    TOO_MANY_IMPORTS = "corefile/too-many-imports": "too many imports";
}
