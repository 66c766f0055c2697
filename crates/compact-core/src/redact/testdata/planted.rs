//! Made-up secrets in the texts that they stand in, put together at test time, so that no file holds anything that looks
//! like one. Shared by the tests of the rules and by those that follow a secret through a compaction.

/// Something that must not be seen, and the words that it stands among.
#[derive(Clone, Debug)]
pub(crate) struct PlantedSecret {
    /// What it is.
    pub(crate) kind: String,
    /// The text with it.
    pub(crate) text: String,
    /// What must not be seen.
    pub(crate) value: String,
}

/// Numbers without end, the same every time.
struct MadeUp(u64);

const SMALL: &str = "abcdefghijklmnopqrstuvwxyz";
const CAPITAL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";

impl MadeUp {
    fn next(&mut self) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        (0..length)
            .map(|_| alphabet[self.next() % alphabet.len()])
            .collect()
    }

    /// What an element such as `an:36` asks for.
    fn element(&mut self, element: &str) -> String {
        let (class, length) = element.split_once(':').unwrap();
        let alphabet = match class {
            "hex" => "0123456789abcdef".to_owned(),
            "d" => DIGITS.to_owned(),
            "b32" => [CAPITAL, "234567"].concat(),
            "letters" => [SMALL, CAPITAL].concat(),
            "up" => [CAPITAL, DIGITS].concat(),
            "low" => [SMALL, DIGITS].concat(),
            "an" => [SMALL, CAPITAL, DIGITS].concat(),
            "url" => [SMALL, CAPITAL, DIGITS, "_-"].concat(),
            "b64" => [SMALL, CAPITAL, DIGITS, "+/"].concat(),
            "sign" => [SMALL, CAPITAL, DIGITS, "!#%^&*+"].concat(),
            _ => panic!("no class {class}"),
        };
        self.of(&alphabet, length.parse().unwrap())
    }

    fn fill(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            match after.split_once('}') {
                Some((element, tail)) if is_element(element) => {
                    out.push_str(&self.element(element));
                    rest = tail;
                }
                _ => {
                    out.push('{');
                    rest = after;
                }
            }
        }
        out + rest
    }

    fn base64_lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.element("b64:64")).collect()
    }

    fn jwt(&mut self) -> [String; 3] {
        let header = encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let claims = format!(r#"{{"sub":"{}","name":"Jo"}}"#, self.element("d:10"));
        [header, encode(&claims), self.element("url:43")]
    }
}

fn is_element(text: &str) -> bool {
    let parts = text.split_once(':');
    parts.is_some_and(|(class, length)| {
        class
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && !class.is_empty()
            && length.parse::<usize>().is_ok()
    })
}

/// Base64 without padding.
fn encode(text: &str) -> String {
    let alphabet: Vec<char> = [CAPITAL, SMALL, DIGITS, "+/"].concat().chars().collect();
    let bits: String = text.bytes().map(|b| format!("{b:08b}")).collect();
    let sextets = bits.as_bytes().chunks(6);
    sextets
        .map(|bits| {
            let bits = format!("{:0<6}", String::from_utf8_lossy(bits));
            alphabet[usize::from_str_radix(&bits, 2).unwrap()]
        })
        .collect()
}

/// Every kind once, made up from a number.
pub(crate) fn planted_secrets(seed: u64) -> Vec<PlantedSecret> {
    let made_up = &mut MadeUp(seed);
    let mut all = fill_lines(include_str!("planted.txt"), made_up);
    all.extend(framed_keys(made_up));
    all.extend(wrapped_secrets(made_up));
    all
}

/// Secrets that only their place gives away, each kind once.
pub(crate) fn placed_secrets(seed: u64) -> Vec<PlantedSecret> {
    fill_lines(include_str!("placed.txt"), &mut MadeUp(seed))
}

/// The secrets of a file, one a line.
fn fill_lines(file: &str, made_up: &mut MadeUp) -> Vec<PlantedSecret> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (kind, template) = line.split_once('\t').unwrap();
            let filled = made_up.fill(&template.replace("\\n", "\n"));
            let (before, rest) = filled.split_once('«').unwrap();
            let (value, after) = rest.split_once('»').unwrap();
            PlantedSecret {
                kind: kind.to_owned(),
                text: [before, value, after].concat(),
                value: value.to_owned(),
            }
        })
        .collect()
}

/// Texts that look drawn and are no secrets, made up from a number.
pub(crate) fn harmless_texts(seed: u64) -> Vec<String> {
    let made_up = &mut MadeUp(seed);
    let lines = include_str!("harmless.txt").lines();
    let texts = lines.filter(|line| !line.starts_with('#'));
    texts
        .map(|line| made_up.fill(&line.replace("\\n", "\n")))
        .collect()
}

fn planted(kind: &str, text: String, value: &str) -> PlantedSecret {
    PlantedSecret {
        kind: kind.to_owned(),
        text,
        value: value.to_owned(),
    }
}

/// What a tool makes of a line with its number.
type LineDecoration = fn(usize, &str) -> String;

/// Private keys as tools print them; the value is a line from the middle.
fn framed_keys(made_up: &mut MadeUp) -> Vec<PlantedSecret> {
    let frame = |edge: &str, kind: &str| format!("-----{edge} {kind}{} KEY-----", "PRIVATE");
    let mut all = Vec::new();
    let decorations: [(&str, &str, LineDecoration); 6] = [
        ("key", "RSA ", |_, line| line.to_owned()),
        ("key of ssh", "OPENSSH ", |_, line| line.to_owned()),
        ("key with line numbers", "", |n, line| {
            format!("{n:6}\t{line}")
        }),
        ("key in a diff", "EC ", |_, line| format!("+{line}")),
        ("key, indented", "", |_, line| format!("    {line}")),
        ("key through grep", "RSA ", |n, line| {
            format!("keys/server.pem:{n}:{line}")
        }),
    ];
    for (kind, label, decorate) in decorations {
        let mut lines = vec![frame("BEGIN", label)];
        lines.extend(made_up.base64_lines(14));
        lines.push(frame("END", label));
        let text: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(n, line)| decorate(n + 1, line))
            .collect();
        all.push(planted(kind, text.join("\n"), &lines[8]));
    }
    let lines = made_up.base64_lines(14);
    let tail = format!("{}\n{}", lines[5..].join("\n"), frame("END", "RSA "));
    all.push(planted("key without its beginning", tail, &lines[8]));
    let lines = made_up.base64_lines(14);
    let account = format!(
        r#"{{"type":"service_account","private_key":"{}\n{}\n{}\n"}}"#,
        frame("BEGIN", ""),
        lines.join("\\n"),
        frame("END", "")
    );
    all.push(planted("key of a service account", account, &lines[3]));
    all
}

/// Secrets within something else.
fn wrapped_secrets(made_up: &mut MadeUp) -> Vec<PlantedSecret> {
    let [header, claims, signature] = made_up.jwt();
    let jwt = [header, claims, signature.clone()].join(".");
    let github = ["gh", "p_", &made_up.element("an:36")].concat();
    let wrapped = encode(&github);
    let login = encode(&format!("alice:{}", made_up.element("an:16")));
    let colour = made_up.element("an:36");
    let hidden = made_up.element("an:30");
    vec![
        planted("jwt", format!("token: {jwt}"), &signature),
        planted(
            "jwt in a header",
            format!("curl -H \"Authorization: Bearer {jwt}\" https://x"),
            &signature,
        ),
        planted(
            "jwt in a cookie",
            format!("Cookie: session={jwt}; path=/"),
            &signature,
        ),
        planted(
            "jwt in base64",
            format!("data: {}", encode(&jwt)),
            &encode(&jwt),
        ),
        planted("token in base64", format!("data: {wrapped}"), &wrapped),
        planted(
            "basic login",
            format!("Authorization: Basic {login}"),
            &login,
        ),
        planted(
            "token after a colour",
            format!("gh{}\u{1b}[31m{colour}\u{1b}[0m", "p_"),
            &colour,
        ),
        planted(
            "token around nothing",
            format!("gh{}abcdef\u{200b}{hidden}", "p_"),
            &hidden,
        ),
        planted(
            "token in JSON within JSON",
            serde_json::to_string(&format!(r#"{{"k":"{github}"}}"#)).unwrap(),
            &github,
        ),
    ]
}
