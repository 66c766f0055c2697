//! Secrets that are given away by where they stand: addresses, headers, commands, cookies, hashes of passwords.
//!
//! A pattern runs only where its word stands, anchored there and bounded. No pattern crosses a quote or cuts an escape,
//! which keeps JSON valid.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

use super::rules::constant;
use super::secret_check;

/// How many bytes a pattern may look at.
const REACH: usize = 512;

/// How far before a flag its command may stand.
const COMMAND_REACH: usize = 300;

/// The most bytes of an address before its `@`.
const LONGEST_LOGIN: usize = 320;

/// What a match must satisfy beyond its shape.
#[derive(Clone, Copy)]
enum ContextProof {
    /// The shape is proof enough.
    Shape,
    /// The value must not be a template such as `${PASSWORD}` or `<token>`.
    NotTemplate,
    /// The value must look random.
    Random,
    /// The value must look random, or like a password that somebody chose.
    Chosen,
    /// The value must have letters, and a digit or a sign.
    Told,
    /// An address with somebody's name or token before its host, which must not be a template.
    Address,
    /// As `Address`, and the value must look random.
    RandomAddress,
    /// One of these commands must stand before it in its line.
    Command(&'static [&'static str]),
    /// Every pair of the header is looked at.
    Pairs,
}

/// A place where secrets stand. The first group of the pattern is what is replaced.
pub(super) struct SecretContext {
    pub(super) name: &'static str,
    pub(super) triggers: &'static [&'static str],
    pub(super) pattern: &'static str,
    proof: ContextProof,
    regex: OnceLock<Regex>,
}

const fn context(
    name: &'static str,
    proof: ContextProof,
    triggers: &'static [&'static str],
    pattern: &'static str,
) -> SecretContext {
    SecretContext {
        name,
        triggers,
        pattern,
        proof,
        regex: OnceLock::new(),
    }
}

/// A value behind a flag: not a flag, a variable or a quote's end.
macro_rules! flag_value {
    () => {
        "([^\\s\"'`\\\\$<>-][^\\s\"'`\\\\<>|;&]{2,})"
    };
}

/// What somebody says is a password: no sign that ends a sentence belongs to it.
macro_rules! said_value {
    () => {
        "([^\\s\"'`\\\\<>,;()]{7,99}[^\\s\"'`\\\\<>,;().:!?])"
    };
}

/// The same where its place leaves no doubt.
macro_rules! short_value {
    () => {
        "([^\\s\"'`\\\\<>,;()/|&]{5,99}[^\\s\"'`\\\\<>,;()/|&.:!?])"
    };
}

pub(super) static CONTEXTS: [SecretContext; 60] = {
    use ContextProof::{
        Address, Chosen, Command, NotTemplate, Pairs, Random, RandomAddress, Shape, Told,
    };
    [
        context(
            "aws-secret",
            Random,
            &["secret_access_key", "secretaccesskey", "secret access key"],
            "^[A-Za-z_ ]{15,17}\\\\*[\"']?[ \t]*[:=]?[ \t]*\\\\*[\"']?([A-Za-z0-9/+]{40})",
        ),
        context(
            "azure-key",
            Shape,
            &["accountkey=", "sharedaccesskey="],
            r"^(?i:accountkey|sharedaccesskey)=([A-Za-z0-9+/]{40,}={0,2})",
        ),
        context(
            "azure-sas",
            Shape,
            &["sig="],
            r"^sig=([A-Za-z0-9%+/]{40,}(?:%3D|=)*)",
        ),
        context(
            "signed-url",
            Shape,
            &["x-amz-signature=", "x-goog-signature="],
            r"^(?i:x-amz|x-goog)-(?i:signature)=([0-9A-Fa-f]{40,})",
        ),
        context(
            "url-password",
            Address,
            &["://"],
            "^://[^\\s/@:\"'`\\\\<>]{0,100}:([^\\s/@\"'`\\\\<>]{1,200})@[A-Za-z0-9\\[]",
        ),
        // A password with `@` or `/` in it, where a port cannot stand.
        context(
            "url-password",
            Address,
            &[
                "ql://",
                "db://",
                "+srv://",
                "redis://",
                "rediss://",
                "amqp://",
                "amqps://",
                "postgres://",
            ],
            "^(?:ql|db|\\+srv|rediss?|amqps?|postgres)://[^\\s/@:\"'`\\\\<>]{1,100}:([^\\s\"'`\\\\<>]{1,200})@[A-Za-z0-9.-]+(?::[0-9]+)?(?:[/?]|$|[\\s\"'`\\\\])",
        ),
        context(
            "url-token",
            RandomAddress,
            &["://"],
            "^://([A-Za-z0-9_-]{20,200})(?::x-oauth-basic)?@[A-Za-z0-9\\[]",
        ),
        context(
            "authorization",
            NotTemplate,
            &["authorization"],
            "^(?i:authorization)\\\\*[\"']?[ \t]*[:=,][ \t]*\\\\*[\"'`]?(?i:bearer|basic|token|apikey|digest|bot)[ \t]+([A-Za-z0-9._~+/-]{6,}=*)",
        ),
        context(
            "authorization",
            Random,
            &["authorization"],
            "^(?i:authorization)\\\\*[\"']?[ \t]*[:=,][ \t]*\\\\*[\"'`]?([A-Za-z0-9._~+/-]{16,}=*)",
        ),
        context(
            "bearer-token",
            Random,
            &["bearer "],
            r"^(?i:bearer) +([A-Za-z0-9._~+/-]{16,}=*)",
        ),
        context(
            "password",
            NotTemplate,
            &["login "],
            "^login[ \t\n]{1,8}\\S{1,100}[ \t\n]{1,8}password[ \t\n]{1,8}([^\\s\"'`\\\\]+)",
        ),
        context(
            "password",
            Command(&["curl", "wget", "http", "https", "hurl"]),
            &[" -u", " --user", " --proxy-user"],
            "^ (?:-u|--user|--proxy-user)[ =]?\\\\*[\"']?[^\\s:\"'`\\\\$]{1,100}:([^\\s\"'`\\\\$<][^\\s\"'`\\\\<>]*)",
        ),
        context(
            "password",
            Command(&[
                "mysql",
                "mysqldump",
                "mysqladmin",
                "mysqlimport",
                "mariadb",
                "mariadb-dump",
                "7z",
                "7za",
                "sshpass",
            ]),
            &[" -p"],
            concat!("^ -p\\\\*[\"']?", flag_value!()),
        ),
        // In quotes a password may hold what ends a word of a shell.
        context(
            "password",
            Command(&["sshpass", "login", "mongo", "mongosh", "mongodump"]),
            &[" -p "],
            "^ -p \\\\*[\"']([^\\s\"'`\\\\$<>]{3,})\\\\*[\"']",
        ),
        context(
            "password",
            Command(&[
                "sshpass",
                "login",
                "mongo",
                "mongosh",
                "mongodump",
                "psexec",
            ]),
            &[" -p "],
            concat!("^ -p \\\\*[\"']?", flag_value!()),
        ),
        context(
            "password",
            Command(&[
                "redis-cli",
                "ldapsearch",
                "ldapadd",
                "ldapmodify",
                "ldapwhoami",
            ]),
            &[" -a ", " -w "],
            concat!("^ -[aw] \\\\*[\"']?", flag_value!()),
        ),
        context(
            "password",
            Command(&["zip", "unzip", "sqlcmd", "bcp", "ipmitool"]),
            &[" -p ", " -p"],
            concat!("^ -P ?\\\\*[\"']?", flag_value!()),
        ),
        context(
            "password",
            Command(&["ssh-keygen"]),
            &[" -n "],
            concat!("^ -N \\\\*[\"']?", flag_value!()),
        ),
        context(
            "password",
            Command(&["snmpwalk", "snmpget", "snmpset"]),
            &[" -a ", " -x "],
            concat!("^ -[AX] \\\\*[\"']?", flag_value!()),
        ),
        context(
            "password",
            Command(&["xfreerdp", "xfreerdp3", "wfreerdp"]),
            &[" /p:"],
            concat!("^ /p:\\\\*[\"']?", flag_value!()),
        ),
        context(
            "password",
            Command(&["openssl"]),
            &[" pass:"],
            concat!("^ pass:", flag_value!()),
        ),
        context(
            "secret",
            Command(&[
                "put-parameter",
                "put-secret-value",
                "secretsmanager",
                "keyvault",
            ]),
            &[" --value ", " --value=", " --secret-string "],
            concat!("^ --(?:value|secret-string)[ =]\\\\*[\"']?", flag_value!()),
        ),
        context(
            "password",
            NotTemplate,
            &["net user ", "rabbitmqctl ", "isql "],
            "^(?:net user [^\\s\"'`\\\\*/]{1,60} |rabbitmqctl (?:add_user|change_password) [^\\s\"'`\\\\]{1,60} |isql [^\\s\"'`\\\\]{1,60} [^\\s\"'`\\\\]{1,60} )\\\\*[\"']?([^\\s\"'`\\\\$<>/*-][^\\s\"'`\\\\<>|;&]{2,})",
        ),
        context(
            "password",
            NotTemplate,
            &["requirepass ", "masterauth "],
            "^(?:requirepass|masterauth) \\\\*[\"']?([^\\s\"'`\\\\$<>]{6,})",
        ),
        context(
            "password",
            NotTemplate,
            &["convertto-securestring "],
            "^(?i:convertto-securestring )(?:-String )?\\\\*[\"']([^\"'`\\\\$<>]{3,100})\\\\*[\"']",
        ),
        context(
            "secret",
            NotTemplate,
            &["::add-mask::"],
            "^::add-mask::([^\\s\"'`\\\\$<>]{3,})",
        ),
        context(
            "wandb-key",
            Shape,
            &["wandb login "],
            "^wandb login (?:--relogin )?([0-9a-f]{40})",
        ),
        context(
            "kaggle-key",
            Shape,
            &["username\":", "username\\\":"],
            "^username\\\\*\": ?\\\\*\"[^\\s\"\\\\]{1,60}\\\\*\", ?\\\\*\"key\\\\*\": ?\\\\*\"([0-9a-f]{32})",
        ),
        // What people say: a login in few words, and what is typed where a password is asked for.
        context(
            "password",
            Chosen,
            &[
                "creds",
                "credentials",
                "login: ",
                "login is ",
                "logins are ",
                "account: ",
                "u/p: ",
                "u/p ",
                "user/pass",
                "username/pass",
                "zugangsdaten",
                "identifiants",
                "credenciales",
            ],
            concat!(
                "^(?i:creds|credentials|logins?|account|u/p|user(?:name)?/pass(?:word)?|zugangsdaten|identifiants|credenciales)",
                "(?: are| is| sind| son| sont)?(?: ?:)? {0,2}[A-Za-z0-9._@-]{1,60} ?[/:] ?",
                said_value!()
            ),
        ),
        context(
            "password",
            Chosen,
            &[
                "log in ",
                "logged in ",
                "login with ",
                "sign in ",
                "signed in ",
                "melde dich ",
            ],
            concat!(
                "^(?i:log(?:ged)? ?in|sign(?:ed)? in|melde dich) (?:as|with|using|mit|als) [A-Za-z0-9._@-]{1,60}(?: and| with| using|,| /| und| mit) ",
                said_value!()
            ),
        ),
        context(
            "password",
            Told,
            &[
                "creds",
                "credentials",
                "login: ",
                "login is ",
                "logins are ",
                "u/p",
                "zugangsdaten",
                "identifiants",
                "credenciales",
            ],
            concat!(
                "^(?i:creds|credentials|logins?|u/p|zugangsdaten|identifiants|credenciales)",
                "(?: [a-z]{2,9}){0,3}(?: ?:)? {1,2}[A-Za-z0-9._@-]{1,60} / ",
                short_value!()
            ),
        ),
        context(
            "password",
            Told,
            &["user", "login", "benutzer", "utilisateur ", "usuario "],
            concat!(
                "^(?i:user|username|login|benutzer|benutzername|utilisateur|usuario)[:= ] ?[A-Za-z0-9._@-]{1,60}",
                "[ ,;/|&]{1,3}(?:(?i:and|und|with|mit|et|y) )?(?i:pass|password|passwort|passwd|pw|pwd)",
                "(?: is |: ?|=| )",
                short_value!()
            ),
        ),
        context(
            "password",
            Chosen,
            &["password", "passphrase", "passcode", "passwort"],
            concat!(
                "^(?i:password|passphrase|passcode|passwort)s?[^\\n\"'`\\\\=:(){}]{0,60}?(?:'s|\\bis|\\benter|\\btype|\\buse|\\balways,) ",
                said_value!()
            ),
        ),
        context(
            "password",
            Chosen,
            &["unlock ", "unlocks "],
            concat!("^(?i:unlocks?)(?: [a-z]{1,12}){0,4} with ", said_value!()),
        ),
        context(
            "password",
            Chosen,
            &["type ", "enter "],
            concat!(
                "^(?i:type|enter) ",
                said_value!(),
                " (?:when|at|if|for|as)[^\\n]{1,40}(?i:password|passphrase|passcode)"
            ),
        ),
        context(
            "password",
            Chosen,
            &["wifi", "wi-fi", "wlan"],
            concat!(
                "^(?i:wi-?fi|wlan)[^\\n\"'`\\\\={}]{0,60}? (?i:key|pass|pw)(?: is)?:? ",
                said_value!()
            ),
        ),
        context(
            "secret",
            Random,
            &["the key", "my key", "your key", "key's ", "token's "],
            concat!(
                "^(?i:(?:the|my|your) key|key|token)(?:'s|:| is) ",
                said_value!()
            ),
        ),
        context(
            "pin",
            Shape,
            &[
                "the pin ",
                "die pin ",
                "my pin ",
                "your pin ",
                " pin for ",
                " pin of ",
                " pin für ",
                " pin der ",
                " pin is ",
                " pin: ",
                " pin code ",
                " pin-code ",
                "otp ",
                "otp: ",
                "time code ",
                "time password ",
            ],
            concat!(
                "^(?i:the pin|die pin|my pin|your pin| pin|otp|time code|time password)(?i:[ -]code)?",
                "(?:(?i: for| of| für| der)(?: [\\p{L}'-]{1,20}){1,4}?(?: is| was| ist| lautet|:)|(?: is| was| ist| lautet|:)?)",
                " #?([0-9]{4,8})(?:[^0-9A-Za-z.%_-]|[.](?:[^0-9]|$)|$)"
            ),
        ),
        // A card that can be paid with: its number is somebody's data, with the code beside it a secret.
        context(
            "card-number",
            Shape,
            &["card", "visa", "amex"],
            "^(?i:card|visa|amex)[^0-9\\n]{0,24}([0-9]{4}(?:[ -]?[0-9]{4}){2}[ -]?[0-9]{3,4})[^0-9\\n][^\\n]{0,40}?\\b(?i:cvv|cvc|cvv2|cvc2|security code)\\b",
        ),
        context(
            "card-code",
            Shape,
            &["cvv", "cvc"],
            "^(?i:cvv|cvc)2?(?i: code| number)?(?: is|:|=)? ?([0-9]{3,4})(?:[^0-9A-Za-z.%_-]|[.](?:[^0-9]|$)|$)",
        ),
        context(
            "recovery-code",
            Shape,
            &[
                "backup code",
                "recovery code",
                "recovery key",
                "2fa code",
                "mfa code",
                "unlock code",
                "security code",
                "access code",
                "door code",
            ],
            concat!(
                "^(?i:backup|recovery|2fa|mfa|unlock|security|access|door) (?i:code|key)s?(?: is| are| was)?:? ",
                "((?:[A-Za-z]{0,7}[0-9][A-Za-z0-9]{0,7}-[A-Za-z0-9]{4,8}|[A-Za-z0-9]{4,8}-[A-Za-z]{0,7}[0-9][A-Za-z0-9]{0,7})(?:-[A-Za-z0-9]{4,8}){0,7}|[0-9]{4,10}\\b)"
            ),
        ),
        context(
            "pin",
            Shape,
            &["combination is ", "combination: "],
            "^(?i:combination)(?: is|:) ([0-9]{1,2}(?:-[0-9]{1,2}){2,3})",
        ),
        context(
            "secret",
            NotTemplate,
            &["security answer"],
            "^(?i:security answer)\\)?(?: is|:) ([^\\s\"'`\\\\<>]{4,60})",
        ),
        // A name and its password as arguments of a call.
        context(
            "password",
            Chosen,
            &[
                "basicauth(",
                "basic_auth(",
                "basic_auth \"",
                "basic_auth '",
                "basic_auth \\\"",
                "auth=(",
                "networkcredential(",
                "getconnection(",
                "mysqli_connect(",
                "plainauth(",
            ],
            "^(?i:[a-z_=]{4,20})[ (](?:[^\"'\\n]{0,60}\\\\*[\"'][^\"'\\n]{0,80}[\"'] ?, ?){1,2}\\\\*[\"']([^\\s\"'`\\\\$<>]{6,100})\\\\*[\"']",
        ),
        context(
            "password",
            NotTemplate,
            &[
                "password\" {",
                "password\\\" {",
                "secret\" {",
                "secret\\\" {",
                "token\" {",
                "token\\\" {",
            ],
            "^(?i:password|secret|token)\\\\*\" \\{[^}]{0,200}?\\bdefault {1,12}= {1,4}\\\\*\"([^\\s\"'`\\\\$<>]{6,100})",
        ),
        context(
            "password",
            NotTemplate,
            &["expect "],
            "^expect [^\\n]{0,60}(?i:assword|assphrase)[^\\n\\\\]{0,20}(?:\\\\+\"|\")[^\\n\\\\]{0,4}(?:\\n|\\\\+n)[ \\t]{0,16}send (?:-- )?\\\\*\"([^\\s\"'`\\\\$<>]{3,100})",
        ),
        context(
            "password",
            Command(&["openssl"]),
            &[" -k "],
            concat!("^ -k \\\\*[\"']?", flag_value!()),
        ),
        context(
            "password",
            Command(&["smbclient", "rpcclient", "smbmap"]),
            &[" -u"],
            "^ -U ?\\\\*[\"']?[^\\s%\"'`\\\\]{1,100}%([^\\s\"'`\\\\$<>]{3,})",
        ),
        context(
            "password",
            Command(&["lftp"]),
            &[" -u"],
            "^ -u ?\\\\*[\"']?[^\\s,\"'`\\\\]{1,100},([^\\s\"'`\\\\$<>]{3,})",
        ),
        context(
            "password",
            NotTemplate,
            &["echo ", "printf "],
            "^(?:echo|printf) (?:-n )?\\\\*[\"']?([^\\s\"'`\\\\$<>|;&]{3,100})\\\\*[\"']? ?\\| ?(?:sudo -S|(?:sudo )?chpasswd|kinit|gcloud secrets|wrangler secret put|docker secret create|gh secret set|vercel env add|pass insert|[^|;&\\n\"'`\\\\]{1,120}--password-stdin)",
        ),
        context(
            "password",
            NotTemplate,
            &["htpasswd -"],
            "^htpasswd -[A-Za-z]{0,4}b[A-Za-z]{0,4} [^\\s\"'`\\\\]{1,200} [^\\s\"'`\\\\]{1,100} ([^\\s\"'`\\\\$<>]{3,})",
        ),
        context(
            "password",
            NotTemplate,
            &["sqlplus ", "jdbc:oracle:thin:"],
            "^(?:sqlplus (?:-[A-Za-z]+ ){0,3}|jdbc:oracle:thin:)[A-Za-z0-9_]{1,60}/([^\\s\"'`\\\\@<>]{1,200})@",
        ),
        context(
            "password",
            NotTemplate,
            &[":5432:", ":5433:", ":6432:", ":6543:"],
            "^:[0-9]{4}:[^\\s:\"'`\\\\]{1,64}:[^\\s:\"'`\\\\]{1,64}:([^\\s:\"'`\\\\<>]{3,})",
        ),
        context(
            "password",
            NotTemplate,
            &["identified by '", " password '", "set password"],
            "^(?i:identified by| password|set password(?: for [^=\\n]{1,80})? ?=) ?'([^'\\s\"`\\\\<>]{3,})'",
        ),
        context(
            "password",
            Shape,
            &["password 7 "],
            "^(?i:password 7 )([0-9A-Fa-f]{8,60})",
        ),
        context(
            "password",
            NotTemplate,
            &["snmp-server community "],
            "^(?i:snmp-server community )([A-Za-z0-9][^\\s\"'`\\\\<>]{2,59})",
        ),
        context(
            "password-hash",
            Shape,
            &[":aad3b435b51404eeaad3b435b51404ee:"],
            "^:[0-9a-f]{32}:([0-9a-f]{32}):::",
        ),
        context(
            "one-time-secret",
            Shape,
            &["otpauth://"],
            "^otpauth://[^\\s\"'`\\\\<>?]{1,200}\\?(?:[^\\s\"'`\\\\<>]{0,200}&)?secret=([A-Za-z2-7]{16,128})",
        ),
        context(
            "seed-phrase",
            Shape,
            &["seed phrase", "recovery phrase", "mnemonic"],
            "^(?i:seed phrase|recovery phrase|mnemonic)\\\\*[\"']?(?: is| are)?[ \t]*[:=]?[ \t]*\\\\*[\"'`]?((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
        ),
        context(
            "cookie",
            Pairs,
            &[
                "cookie: ",
                "cookie:\\\"",
                "cookie\": \"",
                "cookie\\\": \\\"",
                "--cookie ",
                " -b ",
            ],
            "^(?i:-?-?[a-z]+)\\\\*\"?:? ?\\\\*[\"']?([^\\s\"'`\\\\]+=[^\"'`\\\\\r\n]+)",
        ),
    ]
};

impl SecretContext {
    /// Calls `found` with each secret that the trigger at `start` gives away.
    pub(super) fn find_at(
        &self,
        text: &str,
        start: usize,
        scan: &mut ContextScan,
        mut found: impl FnMut(Range<usize>),
    ) {
        let end = text.floor_char_boundary(start.saturating_add(REACH).min(text.len()));
        let within = text.get(start..end).unwrap_or_default();
        if !self.may_be_here(text, start, within, scan) {
            return;
        }
        let captures = self.regex().captures(within);
        let Some(value) = captures.and_then(|c| c.get(1).or_else(|| c.get(0))) else {
            return;
        };
        let range = start + value.start()..start + value.end();
        if let ContextProof::Pairs = self.proof {
            scan.pairs_end = range.end;
            find_pairs(value.as_str(), |pair| {
                found(range.start + pair.start..range.start + pair.end)
            });
        } else if self.accepts(value.as_str()) {
            found(range.start..beyond_reach(text, range.end, end));
        }
    }

    /// A quick look before the pattern's slow one.
    fn may_be_here(&self, text: &str, start: usize, within: &str, scan: &mut ContextScan) -> bool {
        match self.proof {
            ContextProof::Command(commands) => {
                scan.commands.read_until(text, start);
                scan.commands
                    .words
                    .iter()
                    .any(|word| commands.contains(word))
            }
            ContextProof::Address | ContextProof::RandomAddress => {
                scan.may_have_login(within, start)
            }
            ContextProof::Pairs => start >= scan.pairs_end,
            ContextProof::Shape
            | ContextProof::NotTemplate
            | ContextProof::Random
            | ContextProof::Chosen
            | ContextProof::Told => true,
        }
    }

    fn accepts(&self, value: &str) -> bool {
        match self.proof {
            ContextProof::Random | ContextProof::RandomAddress => secret_check::looks_random(value),
            ContextProof::Chosen => {
                secret_check::looks_random(value) || secret_check::looks_chosen(value)
            }
            ContextProof::Told => secret_check::looks_given(value),
            ContextProof::NotTemplate | ContextProof::Address | ContextProof::Command(_) => {
                !secret_check::is_template(value)
            }
            ContextProof::Shape | ContextProof::Pairs => true,
        }
    }

    fn commands(&self) -> Option<&'static [&'static str]> {
        match self.proof {
            ContextProof::Command(commands) => Some(commands),
            _ => None,
        }
    }

    /// The compiled pattern.
    pub(super) fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| constant(self.pattern))
    }
}

/// What one pass over a text remembers, so that no byte is read for every trigger behind it.
#[derive(Default)]
pub(super) struct ContextScan {
    /// Until where the last header of pairs was read.
    pairs_end: usize,
    /// Until where no address has a name before its host.
    no_login_until: usize,
    commands: CommandLine,
}

impl ContextScan {
    fn may_have_login(&mut self, within: &str, start: usize) -> bool {
        if start < self.no_login_until {
            return false;
        }
        let Some(login) = within.find('@') else {
            self.no_login_until = (start + within.len()).saturating_sub(LONGEST_LOGIN);
            return false;
        };
        let ends = |b: u8| {
            b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'\\' | b'<' | b'>')
        };
        let address = within.bytes().take(login).position(ends);
        self.no_login_until = address.map_or(start, |length| start + length);
        address.is_none()
    }
}

/// The commands of a line, as far as it was read.
#[derive(Default)]
struct CommandLine {
    read: usize,
    words: Vec<&'static str>,
}

impl CommandLine {
    /// Reads on until a flag; a new line, a pipe or a semicolon begins a new command.
    fn read_until(&mut self, text: &str, flag: usize) {
        let from = self
            .read
            .max(text.floor_char_boundary(flag.saturating_sub(COMMAND_REACH)));
        if from > self.read {
            self.words.clear();
        }
        let more = text.get(from..flag).unwrap_or_default();
        let line = more.rsplit(['\n', '|', ';']).next().unwrap_or_default();
        if line.len() < more.len() {
            self.words.clear();
        }
        for word in line.split([' ', '\t', '"', '\'', '`', '(', '/', '\\']) {
            let known = CONTEXTS
                .iter()
                .filter_map(SecretContext::commands)
                .flatten();
            // In raw JSON the letter of an escape such as `\n` stands before the word.
            let escaped = word.strip_prefix(['n', 'r', 't']);
            let known = known
                .copied()
                .find(|command| *command == word || Some(*command) == escaped);
            if let Some(command) = known.filter(|command| !self.words.contains(command)) {
                self.words.push(command);
            }
        }
        self.read = flag.max(self.read);
    }
}

/// The values of `name=value; name=value` that look random, or that let their holder in by their name.
fn find_pairs(header: &str, mut found: impl FnMut(Range<usize>)) {
    let mut at = 0;
    for pair in header.split(';') {
        if let Some((name, value)) = pair.split_once('=') {
            let value = value.split([' ', ',']).next().unwrap_or_default();
            let start = at + name.len() + 1;
            let is_session =
                secret_check::names_session(name) && secret_check::looks_like_session(value);
            if is_session || secret_check::looks_random(value) {
                found(start..start + value.len());
            }
        }
        at += pair.len() + 1;
    }
}

/// A value that fills the reach goes on as long as it looks like one.
fn beyond_reach(text: &str, end: usize, reach: usize) -> usize {
    if end < reach {
        return end;
    }
    let more = text.get(end..).unwrap_or_default().bytes();
    end + more
        .take_while(|b| b.is_ascii_alphanumeric() || b"+/=_-.".contains(b))
        .count()
}
