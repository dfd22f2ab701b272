//! The forms of secrets, as data. This is the only such list in the workspace; [`redact`](super::redact) uses it.

/// Prefixes of keys and tokens of known services, and the minimum number of characters that follow. Case-insensitive,
/// because arguments may have been lower-cased.
#[rustfmt::skip]
pub(super) const PREFIXES: &[(&str, usize)] = &[
    // Clouds and hosting.
    ("akia", 12), ("asia", 16), ("agpa", 16), ("aida", 16), ("aroa", 16), ("anpa", 16), ("abia", 16), ("acca", 16),
    ("aiza", 20), ("ya29.", 10), ("gocspx-", 10),
    ("1//0", 20),
    ("ltai", 16), ("akid", 24), ("iqojb3", 20), ("fwog", 24), ("dop_v1_", 10), ("doo_v1_", 10), ("dor_v1_", 10),
    ("hrku-", 10), ("fo1_", 16), ("flyv1", 8), ("dckr_pat_", 10), ("dckr_oat_", 10), ("tskey-", 8), ("hvs.", 12),
    ("hvb.", 12), ("hvr.", 12), ("dp.pt.", 12), ("dp.st.", 12), ("pul-", 20), ("pnu_", 20), ("pscale_tkn_", 10),
    ("pscale_pw_", 10), ("pscale_oauth_", 10), ("sbp_", 16), ("ops_eyj", 10), ("vercel_", 16), ("cfut_", 16),
    ("dapi", 28), ("dt0c01.", 12), ("netlify_", 16), ("nfp_", 16), ("rnd_", 20), ("linode_", 20),
    // Code and packages.
    ("ghp_", 8), ("gho_", 8), ("ghu_", 8), ("ghs_", 8), ("ghr_", 8), ("github_pat_", 8), ("glpat-", 8), ("glptt-", 8),
    ("gldt-", 8), ("glrt-", 8), ("glcbt-", 8), ("glft-", 8), ("glsoat-", 8), ("glimt-", 8), ("glagent-", 8),
    ("gr1348941", 8), ("atatt3", 10), ("atctt3", 10), ("atbb", 20), ("bbdc-", 16), ("npm_", 12), ("pypi-", 12),
    ("rubygems_", 10), ("clojars_", 10), ("sgp_", 12), ("nuget_", 16), ("oy2", 40), ("ccipat_", 10),
    ("sntrys_", 10), ("sntryu_", 10), ("snyk_", 16), ("sqp_", 12), ("squ_", 12), ("figd_", 10), ("pmak-", 10),
    ("bkua_", 10), ("lin_api_", 8), ("lin_oauth_", 8), ("ntn_", 12), ("secret_", 20), ("jfrog_", 16), ("akcp", 20),
    // Models.
    ("sk-", 10), ("gsk_", 12), ("xai-", 12), ("pplx-", 12), ("r8_", 16), ("hf_", 10), ("api_org_", 10),
    ("nvapi-", 10), ("csk-", 12), ("fw_", 20), ("jina_", 12), ("voyage-", 20), ("tvly-", 10), ("lsv2_pt_", 10),
    ("lsv2_sk_", 10), ("pcsk_", 10), ("dlp_", 28),
    // Money, messages, monitoring.
    ("sk_live_", 6), ("sk_test_", 6), ("rk_live_", 6), ("rk_test_", 6), ("pk_live_", 6), ("whsec_", 8),
    ("sq0atp-", 8), ("sq0csp-", 8), ("eaaa", 40), ("shpat_", 10), ("shpca_", 10), ("shppa_", 10), ("shpss_", 10),
    ("shippo_live_", 10), ("shippo_test_", 10), ("flwseck", 10), ("ezak", 30), ("eztk", 30), ("xoxb-", 6),
    ("xoxa-", 6), ("xoxp-", 6), ("xoxr-", 6), ("xoxs-", 6), ("xoxe", 8), ("xoxo-", 6), ("xoxc-", 6), ("xoxd-", 6),
    ("xapp-", 6), ("xwfp-", 6), ("sg.", 30), ("xkeysib-", 10), ("key-", 28), ("mlsn.", 12), ("nrak-", 10),
    ("nrii-", 10), ("nrjs-", 10), ("glc_", 12), ("glsa_", 10), ("phc_", 16), ("phx_", 16),
    ("sk.eyj", 10), ("pk.eyj", 10), ("eyj", 12), ("age-secret-key-1", 8), ("ops_", 40),
    ("hooks.slack.com/services/", 6), ("discord.com/api/webhooks/", 6), ("outlook.office.com/webhook/", 6),
    ("api.telegram.org/bot", 6),
];

/// Words that are the last part of a secret's name: `DB_PASS`.
pub(super) const NAMES: &[&str] =
    &["pass", "pwd", "pat", "sig", "auth", "psk", "otp", "pin", "credentials", "creds", "jwt", "sas"];
/// Endings of the last part of a secret's name: `authToken`, `PGPASSWORD`.
#[rustfmt::skip]
pub(super) const NAME_ENDS: &[&str] = &[
    "token", "secret", "password", "passwd", "passphrase", "apikey", "accesskey", "privatekey", "secretkey",
    "credential", "cookie", "authorization", "signature", "passcode", "apipassword", "accesstoken",
    "connectionstring",
];
/// Pairs of parts that together make a secret's name.
#[rustfmt::skip]
pub(super) const NAME_PAIRS: &[(&str, &[&str])] = &[
    ("key", &["api", "access", "private", "secret", "signing", "encryption", "account", "master", "session", "auth",
        "service", "license", "deploy", "application"]),
    ("string", &["connection"]), ("id", &["secret"]), ("value", &["secret", "password", "token"]),
];

/// Programs whose `-p` takes a password, attached or as the next word.
#[rustfmt::skip]
pub(super) const JOINED: &[&str] = &[
    "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mariadb", "mariadb-dump", "7z", "7za", "sshpass",
];
#[rustfmt::skip]
pub(super) const SPACED: &[(&str, &str)] = &[
    ("sshpass", "-p"), ("docker", "-p"), ("podman", "-p"), ("buildah", "-p"), ("helm", "-p"), ("oc", "-p"),
    ("az", "-p"), ("twine", "-p"), ("mongo", "-p"), ("mongosh", "-p"), ("mongodump", "-p"), ("mongorestore", "-p"),
    ("redis-cli", "-a"), ("unzip", "-P"), ("zip", "-P"), ("ldapsearch", "-w"), ("ldapadd", "-w"),
    ("ldapmodify", "-w"), ("nexus", "-p"), ("cqlsh", "-p"), ("influx", "-t"), ("sqlcmd", "-P"), ("isql", "-P"),
    ("bcp", "-P"), ("smbclient", "-U"), ("xfreerdp", "/p"), ("curl", "-b"), ("curl", "--cookie"),
];
/// Those for which this applies only when they log in: `docker run -p 80:80` is a port.
pub(super) const ONLY_LOGIN: &[&str] = &["docker", "podman", "buildah", "helm", "oc", "az", "twine"];
