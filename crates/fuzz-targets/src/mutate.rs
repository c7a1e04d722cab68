//! Inputs from seeds: a few plain changes of one of them. Which, is told by the seed of the run and
//! the number of the input alone, so that any input can be made again.

use crate::dice::Dice;
use std::collections::BTreeSet;

/// Words of the dictionary have so many bytes.
const WORDS: std::ops::RangeInclusive<usize> = 3..=32;

/// Words that are kept.
const MOST_WORDS: usize = 4000;

/// An input is no longer than this, or twice its longest seed.
const LONGEST: usize = 64 << 10;

/// Numbers that readers trip over.
const ODD: [u64; 14] = [
    0,
    1,
    2,
    7,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// What inputs are made of.
pub struct Corpus {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    longest: usize,
}

impl Corpus {
    #[must_use]
    pub fn new(mut seeds: Vec<Vec<u8>>) -> Self {
        if seeds.is_empty() {
            seeds.push(Vec::new());
        }
        let longest = seeds.iter().map(Vec::len).max().unwrap_or(0);
        Corpus { words: words(&seeds), longest: LONGEST.max(2 * longest), seeds }
    }

    /// The input of this number, in a run of this seed. The first ones are the seeds as they are.
    #[must_use]
    pub fn input(&self, seed: u64, number: u64) -> Vec<u8> {
        if let Some(as_it_is) = self.seeds.get(number as usize) {
            return as_it_is.clone();
        }
        let mut dice = Dice(Dice(seed).word() ^ number);
        let mut bytes = self.seed(&mut dice).to_vec();
        // Few changes get far, many get somewhere else.
        let changes = 1 + dice.below(4) * dice.below(4);
        for _ in 0..changes {
            self.change(&mut bytes, &mut dice);
        }
        bytes.truncate(self.longest);
        bytes
    }

    fn seed(&self, dice: &mut Dice) -> &[u8] {
        &self.seeds[dice.index(self.seeds.len())]
    }

    fn change(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        let at = dice.index(bytes.len());
        match dice.below(14) {
            0 | 1 => bytes.iter_mut().skip(at).take(1).for_each(|b| *b ^= 1 << dice.below(8)),
            2 => bytes.iter_mut().skip(at).take(1).for_each(|b| *b = dice.word() as u8),
            3 => bytes.iter_mut().skip(at).take(1).for_each(|b| {
                *b = b.wrapping_add(dice.below(17) as u8).wrapping_sub(8);
            }),
            4 | 5 => {
                let odd = ODD[dice.index(ODD.len())];
                put_number(bytes, at, odd.wrapping_sub(dice.below(2)), dice);
            }
            // A length or an offset of this very input.
            6 => {
                let place = dice.below(bytes.len() as u64 + 9);
                put_number(bytes, at, place, dice);
            }
            7 => _ = bytes.drain(at..span(at, bytes.len(), dice)),
            8 => {
                let copy = bytes[at..span(at, bytes.len(), dice)].to_vec();
                insert(bytes, dice.index(bytes.len() + 1), &copy);
            }
            9 => {
                let noise: Vec<u8> = (0..1 + dice.below(8)).map(|_| dice.word() as u8).collect();
                insert(bytes, at, &noise);
            }
            10 => {
                let word = self.word(dice);
                insert(bytes, at, word);
            }
            11 => {
                let word = self.word(dice);
                let end = bytes.len().min(at + word.len());
                bytes.splice(at..end, word.iter().copied());
            }
            // Another seed's part, or its whole rest.
            12 => {
                let other = self.seed(dice);
                let from = dice.index(other.len());
                if dice.below(3) == 0 {
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[from..]);
                } else {
                    let part = &other[from..span(from, other.len(), dice)];
                    let end = bytes.len().min(at + part.len());
                    bytes.splice(at..end, part.iter().copied());
                }
            }
            _ if dice.below(4) == 0 => bytes.truncate(at),
            _ => {
                let end = span(at, bytes.len(), dice);
                let by = dice.index(end - at);
                bytes[at..end].rotate_left(by);
            }
        }
    }

    fn word(&self, dice: &mut Dice) -> &[u8] {
        self.words.get(dice.index(self.words.len())).map_or(&[], Vec::as_slice)
    }
}

/// The end of a stretch from `at` on, short for the most part.
fn span(at: usize, length: usize, dice: &mut Dice) -> usize {
    let most = [2, 8, 64, 4096][dice.index(4)];
    length.min(at + 1 + dice.index(most))
}

fn insert(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    bytes.splice(at..at, new.iter().copied());
}

/// Writes a number of one to eight bytes over what is there, in either order.
fn put_number(bytes: &mut [u8], at: usize, number: u64, dice: &mut Dice) {
    let length = 1 << dice.below(4);
    let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
    let number = if dice.below(2) == 0 { &little[..length] } else { &big[8 - length..] };
    bytes.iter_mut().skip(at).zip(number).for_each(|(byte, new)| *byte = *new);
}

/// Stretches of letters in the seeds: names, keys and marks of formats.
fn words(seeds: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut words = BTreeSet::new();
    for seed in seeds {
        for word in seed.split(|byte| !byte.is_ascii_graphic()) {
            if WORDS.contains(&word.len()) && words.len() < MOST_WORDS {
                words.insert(word.to_vec());
            }
        }
    }
    words.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_depend_on_seed_and_number_alone_and_differ() {
        let seeds = vec![b"GET /a HTTP/1.1\r\n\r\n".to_vec(), vec![0; 40], Vec::new()];
        let corpus = Corpus::new(seeds.clone());
        let again = Corpus::new(seeds.clone());
        let mut different = BTreeSet::new();
        for number in 0..5000 {
            let input = corpus.input(7, number);
            assert_eq!(input, again.input(7, number));
            assert!(input.len() <= LONGEST);
            different.insert(input);
        }
        assert!(different.len() > 3000, "{}", different.len());
        assert_eq!(corpus.input(7, 1), seeds[1]);
        assert!((3..99).any(|number| corpus.input(7, number) != corpus.input(8, number)));
        assert!(corpus.words.contains(&b"HTTP/1.1".to_vec()));
    }

    #[test]
    fn nothing_but_an_empty_seed_is_enough() {
        let corpus = Corpus::new(Vec::new());
        let longest = (0..2000).map(|number| corpus.input(1, number).len()).max();
        assert!(longest > Some(0));
    }
}
