//! A terminal as ratatui draws to it: cells become the sequences that every terminal of the last
//! forty years understands, and sixteen colours. The bytes of a picture go out in one piece.

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use std::fmt::Write as _;
use std::io::{self, Write};

/// What a terminal is sent. Who has it sets `size` before each picture.
pub struct Ansi<W: Write> {
    out: W,
    pub size: Size,
    /// Without it nothing is told but bold, dim, underlined and reversed.
    colours: bool,
    text: String,
}

impl<W: Write> Ansi<W> {
    pub fn new(out: W, size: Size, colours: bool) -> Self {
        Ansi { out, size, colours, text: String::new() }
    }

    fn style(&mut self, cell: &Cell) {
        self.text.push_str("\x1b[0");
        let known = [
            (Modifier::BOLD, 1),
            (Modifier::DIM, 2),
            (Modifier::UNDERLINED, 4),
            (Modifier::REVERSED, 7),
        ];
        for (_, code) in known.iter().filter(|(modifier, _)| cell.modifier.contains(*modifier)) {
            let _ = write!(self.text, ";{code}");
        }
        if self.colours {
            for (colour, base) in [(cell.fg, 30), (cell.bg, 40)] {
                if let Some(number) = number(colour) {
                    let code = if number < 8 { base + number } else { base + 60 + number - 8 };
                    let _ = write!(self.text, ";{code}");
                }
            }
        }
        self.text.push('m');
    }
}

/// One of sixteen; the terminal's own for the rest.
fn number(colour: Color) -> Option<u8> {
    let all = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    all.iter().position(|known| *known == colour).and_then(|at| u8::try_from(at).ok())
}

impl<W: Write> Backend for Ansi<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut at: Option<(u16, u16)> = None;
        let mut styled: Option<(Color, Color, Modifier)> = None;
        for (x, y, cell) in content {
            if at != Some((x, y)) {
                let _ = write!(self.text, "\x1b[{};{}H", y + 1, x + 1);
            }
            let style = (cell.fg, cell.bg, cell.modifier);
            if styled != Some(style) {
                self.style(cell);
                styled = Some(style);
            }
            self.text.push_str(cell.symbol());
            // Where the cursor is after a wide character is left to nobody's guess.
            at = cell.symbol().is_ascii().then_some((x + 1, y));
        }
        if styled.is_some() {
            self.text.push_str("\x1b[0m");
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.text.push_str("\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.text.push_str("\x1b[?25h");
        Ok(())
    }

    /// Nobody asks a terminal where its cursor is: some do not answer.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        let _ = write!(self.text, "\x1b[{};{}H", y + 1, x + 1);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.text.push_str("\x1b[0m\x1b[2J");
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::style::Style;
    use ratatui_core::terminal::Terminal;

    fn sent(colours: bool) -> String {
        let mut terminal = Terminal::new(Ansi::new(Vec::new(), Size::new(12, 2), colours)).unwrap();
        terminal
            .draw(|frame| {
                let buffer = frame.buffer_mut();
                let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
                buffer.set_string(0, 0, "ab", red);
                buffer.set_string(2, 0, "\u{1b}[2J界é", Style::new().bg(Color::LightBlue));
            })
            .unwrap();
        String::from_utf8(std::mem::take(&mut terminal.backend_mut().out)).unwrap()
    }

    #[test]
    fn cells_become_sequences_and_texts_do_not() {
        let text = sent(true);
        assert!(text.contains("\x1b[1;1H\x1b[0;1;31mab\x1b[0;104m[2J界"), "{text:?}");
        let plain = sent(false);
        assert!(plain.contains("\x1b[1;1H\x1b[0;1mab\x1b[0m[2J界"), "{plain:?}");
        assert!(!plain.contains("31") && !plain.contains("104"), "{plain:?}");
    }
}
