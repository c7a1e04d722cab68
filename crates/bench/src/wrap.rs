//! Lines of generated pages, wrapped as `cargo xtask tidy` asks of all pages in docs/. Tables, code
//! and headings stay as they are.

/// The longest line, in characters.
const WIDTH: usize = 100;

pub fn wrapped(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut in_code = false;
    for line in page.lines() {
        let fence = line.starts_with("```");
        in_code ^= fence;
        let as_it_is = fence || in_code || line.starts_with(['|', '#', '!']);
        if as_it_is || line.chars().count() <= WIDTH {
            text += line;
            text.push('\n');
        } else {
            wrap(line, &mut text);
        }
    }
    text
}

fn wrap(line: &str, text: &mut String) {
    let indent = if line.starts_with("- ") { "  " } else { "" };
    let mut width = 0;
    for word in line.split_whitespace() {
        let length = word.chars().count();
        if width == 0 {
            width = length;
        } else if width + 1 + length > WIDTH && !begins_something(word) {
            text.push('\n');
            text.push_str(indent);
            width = indent.len() + length;
        } else {
            text.push(' ');
            width += 1 + length;
        }
        text.push_str(word);
    }
    text.push('\n');
}

/// Whether Markdown takes a line that begins so for something else than the rest of a sentence.
fn begins_something(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).is_some_and(|n| n.parse::<u32>().is_ok());
    number || matches!(word, "-" | "+" | "*") || word.starts_with(['#', '|', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_and_tables_are_not() {
        let long = "word ".repeat(30).trim_end().to_owned();
        let table = format!("| {long} |\n");
        assert_eq!(wrapped(&table), table);
        let code = format!("```\n{long}\n```\n");
        assert_eq!(wrapped(&code), code);
        let lines = wrapped(&format!("- {long}\n"));
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].len() <= WIDTH && lines[1].starts_with("  word"), "{lines:?}");
        assert_eq!(lines.join(" ").split_whitespace().count(), 31);
    }

    #[test]
    fn no_line_begins_with_what_markdown_would_take_for_a_list() {
        let page = wrapped(&format!("{} - 12 more", "x".repeat(WIDTH - 1)));
        assert_eq!(page.lines().nth(1), Some("12 more"));
    }
}
