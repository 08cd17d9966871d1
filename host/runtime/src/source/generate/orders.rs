//! One order, written. Nothing is allocated, and nothing is asked of the machine.

use super::GenerateFormat;

/// The columns, in their order.
pub(super) const COLUMNS: [&str; 6] = ["id", "customer", "product", "quantity", "price", "created"];
/// No order is longer, with its line feed.
pub(super) const MAX_ORDER_BYTES: usize = 160;

const PRODUCTS: [&str; 16] = [
    "anvil", "basket", "candle", "drill", "easel", "funnel", "globe", "hammer", "inkwell", "jug", "kettle", "lantern", "mirror",
    "notebook", "oar", "plough",
];
const CUSTOMERS: u64 = 100_000;
const MAX_QUANTITY: u64 = 9;
/// Prices run from 0.50 to 500.49.
const CENTS: (u64, u64) = (50, 50_000);
/// Days from 1970-01-01 to 2024-01-01, when order 0 was made; one follows each second.
const FIRST_DAY: u64 = 19_723;
const SECONDS_A_DAY: u64 = 86_400;
/// After so many days the dates begin anew, so that a year has four digits.
const DAYS: u64 = 365_250;

/// Writes orders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders {
    seed: u64,
    format: GenerateFormat,
    /// The day that was written last, since the next order is mostly of the same one.
    day: Day,
}

/// A day and its ten characters.
#[derive(Clone, Copy, Debug)]
struct Day {
    number: u64,
    text: [u8; 10],
}

impl Orders {
    pub(super) fn new(seed: u64, format: GenerateFormat) -> Self {
        Self { seed, format, day: Day::of(0) }
    }

    pub(super) fn format(&self) -> GenerateFormat {
        self.format
    }

    /// Writes order `id` and a line feed.
    pub(super) fn write(&mut self, id: u64, into: &mut Vec<u8>) {
        let random = mix(self.seed, id);
        let customer = random % CUSTOMERS;
        let product = PRODUCTS.get((random >> 20) as usize % PRODUCTS.len()).unwrap_or(&"anvil");
        let quantity = 1 + (random >> 28) % MAX_QUANTITY;
        let cents = CENTS.0 + (random >> 36) % CENTS.1;
        match self.format {
            GenerateFormat::Json => {
                into.extend_from_slice(b"{\"id\":");
                number(id, into);
                into.extend_from_slice(b",\"customer\":\"c");
                padded::<5>(customer, into);
                into.extend_from_slice(b"\",\"product\":\"");
                into.extend_from_slice(product.as_bytes());
                into.extend_from_slice(b"\",\"quantity\":");
                number(quantity, into);
                into.extend_from_slice(b",\"price\":");
                price(cents, into);
                into.extend_from_slice(b",\"created\":\"");
                self.time(id, into);
                into.extend_from_slice(b"\"}\n");
            }
            GenerateFormat::Csv => {
                number(id, into);
                into.extend_from_slice(b",c");
                padded::<5>(customer, into);
                into.push(b',');
                into.extend_from_slice(product.as_bytes());
                into.push(b',');
                number(quantity, into);
                into.push(b',');
                price(cents, into);
                into.push(b',');
                self.time(id, into);
                into.push(b'\n');
            }
        }
    }

    /// `2024-01-01 00:00:00`, and a second later for each order.
    fn time(&mut self, id: u64, into: &mut Vec<u8>) {
        let day = (id / SECONDS_A_DAY) % DAYS;
        if day != self.day.number {
            self.day = Day::of(day);
        }
        let second = id % SECONDS_A_DAY;
        into.extend_from_slice(&self.day.text);
        into.push(b' ');
        padded::<2>(second / 3600, into);
        into.push(b':');
        padded::<2>(second / 60 % 60, into);
        into.push(b':');
        padded::<2>(second % 60, into);
    }
}

impl Day {
    /// The day so many days after the first order's. A year is counted from March, so that the leap day is its last; eras have 400 years.
    fn of(number: u64) -> Self {
        let since_march_of_year_0 = number + FIRST_DAY + 719_468;
        let (era, day_of_era) = (since_march_of_year_0 / 146_097, since_march_of_year_0 % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let mut text = Vec::with_capacity(10);
        padded::<4>(year, &mut text);
        text.push(b'-');
        padded::<2>(month, &mut text);
        text.push(b'-');
        padded::<2>(day, &mut text);
        Self { number, text: text.try_into().unwrap_or(*b"2024-01-01") }
    }
}

/// Two 64-bit numbers to one that looks random: the finisher of the splitmix64 generator, twice.
fn mix(seed: u64, id: u64) -> u64 {
    fn finish(mut z: u64) -> u64 {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    finish(finish(seed.wrapping_add(STEP)).wrapping_add(id.wrapping_mul(STEP)))
}

/// A number in decimal.
fn number(value: u64, into: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut rest = value;
    let mut start = digits.len();
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        start = index;
        if rest == 0 {
            break;
        }
    }
    into.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// The last digits of a number, with zeros in front.
fn padded<const DIGITS: usize>(value: u64, into: &mut Vec<u8>) {
    let mut digits = [b'0'; DIGITS];
    let mut rest = value;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    into.extend_from_slice(&digits);
}

/// Cents with a point before the last two digits.
fn price(cents: u64, into: &mut Vec<u8>) {
    number(cents / 100, into);
    into.push(b'.');
    padded::<2>(cents % 100, into);
}
