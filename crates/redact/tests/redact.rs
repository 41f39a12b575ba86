//! Tests the masking of secrets in command lines.
#![allow(clippy::unwrap_used)] // in a test

use tr_format::event::{Argv, Comm, Ktime, LifeEvent, LifeKind, Mark, Outsider, Point};
use tr_format::mask::Masked;
use tr_redact::{pattern, Redactor};

fn redactor() -> Redactor {
    Redactor::new(true, Vec::new())
}

/// Masks the arguments in a line, which are separated by `|` so that they can contain spaces.
fn masked(line: &str) -> String {
    let argv = Argv::from_args(line.split('|'));
    let kept = redactor().masked_argv(argv);
    assert!(!kept.truncated(), "{line}");
    let args: Vec<_> = kept.args().map(String::from_utf8_lossy).collect();
    args.join("|")
}

/// Verifies the masks of each line `arguments → masked arguments`.
fn check(lines: &str) {
    for line in lines.trim().lines() {
        let (line, want) = line.trim().split_once(" → ").unwrap();
        assert_eq!(masked(line), want);
    }
}

#[test]
fn secrets_are_masked() {
    check(
        r#"
        svn|--password|hunter2|up → svn|--password|***|up
        svn|--password|-hunter2 → svn|--password|***
        x|--token=abc|y → x|--token=***|y
        deploy|github_pat_0123456789abcdefgh → deploy|***
        deploy|dckr_pat_0123456789abcdefgh → deploy|***
        x|--token=a=b&c|y → x|--token=***|y
        x|--token= → x|--token=
        keytool|-storepass|changeit → keytool|-storepass|***
        java|-Djavax.net.ssl.trustStorePassword=pw → java|-Djavax.net.ssl.trustStorePassword=***
        env|AWS_SECRET_ACCESS_KEY=abc|make → env|AWS_SECRET_ACCESS_KEY=***|make
        env|KEY=abc3Fk|make → env|KEY=***|make
        env|PASSWORD=two words → env|PASSWORD=***
        docker|build|--build-arg|NPM_TOKEN=abc → docker|build|--build-arg|NPM_TOKEN=***
        docker|build|--build-arg=NPM_TOKEN=a&b → docker|build|--build-arg=NPM_TOKEN=***
        npm|config|set|//registry.example/:_authToken=abc → npm|config|set|//registry.example/:_authToken=***
        mysql|-uroot|-phunter2|db → mysql|-uroot|-p***|db
        /usr/bin/mysqldump|-p|db → /usr/bin/mysqldump|-p|db
        sudo|mysql|-phunter2 → sudo|mysql|-p***
        curl|-u|me:pw|https://h/ → curl|-u|***|https://h/
        curl|-ume:pw → curl|-u***
        curl|--user|me:pw → curl|--user|***
        curl|--user=me:pw → curl|--user=***
        sshpass|-p|pw|ssh|-p|22|h → sshpass|-p|***|ssh|-p|22|h
        docker|login|-u|me|-p|pw → docker|login|-u|me|-p|***
        docker|run|-p|80:80|img → docker|run|-p|80:80|img
        redis-cli|-a|pw|get|k → redis-cli|-a|***|get|k
        7z|a|-ppw|x.7z → 7z|a|-p***|x.7z
        openssl|enc|-pass|pass:pw → openssl|enc|-pass|***
        openssl|rsa|-passin|pass:pw → openssl|rsa|-passin|***
        curl|-H|Authorization: Bearer abc → curl|-H|Authorization: ***
        curl|-HAuthorization:abc → curl|-HAuthorization:***
        curl|-H|PRIVATE-TOKEN: abc → curl|-H|PRIVATE-TOKEN: ***
        curl|-d|{"password": "p\"w", "a": "b"} → curl|-d|{"password": "***", "a": "b"}
        git|clone|https://me:pw@h/r.git → git|clone|https://me:***@h/r.git
        x|postgres://u:p@ss@h:5432/db → x|postgres://u:***@h:5432/db
        x|postgres://u:p/ss@h/db → x|postgres://u:***@h/db
        wget|https://h/f?access_token=abc&x=1 → wget|https://h/f?access_token=***&x=1
        wget|https://h/f?X-Amz-Signature=abc → wget|https://h/f?X-Amz-Signature=***
        x|Server=h;Password=abc;Database=d → x|Server=h;Password=***;Database=d
        git|clone|https://ghp_0123456789abcdefghijABCDEFGHIJ012345@github.com/x → git|clone|https://***@github.com/x
        deploy|eyJhbGciOiJI.eyJzdWIiOiIx.c2ln → deploy|***
        "#,
    );
    assert_eq!(masked("x|-----BEGIN RSA PRIVATE KEY-----\nabc\n"), "x|***");
}

#[test]
fn scripts_are_read_word_by_word() {
    check(
        r#"
        sh|-c|TOKEN=abc make all → sh|-c|TOKEN=*** make all
        sh|-ec|export DB_PASSWORD='a b'; make → sh|-ec|export DB_PASSWORD='***'; make
        sh|-c|tool --password hunter2 && make → sh|-c|tool --password *** && make
        sh|-c|curl -u me:pw h; mysql -phunter2 db → sh|-c|curl -u *** h; mysql -p*** db
        sh|-c|curl -H 'Authorization: Bearer abc' h → sh|-c|curl -H 'Authorization: ***' h
        sh|-c|ssh h "sh -c 'X_TOKEN=abc make'" → sh|-c|ssh h "sh -c 'X_TOKEN=*** make'"
        ssh|h|FOO_TOKEN=abc make → ssh|h|FOO_TOKEN=***
        "#,
    );
}

#[test]
fn secrets_of_unknown_programs_are_masked() {
    check(
        r#"
        tool|-u|me|-p|maple7lake → tool|-u|me|-p|***
        tool|-l|me|-p|my-secret-pw → tool|-l|me|-p|***
        tool|/u|me|/p|maple7lake → tool|/u|me|/p|***
        tool|-u|me|-p|maplelake → tool|-u|me|-p|***
        tool|-P|25575|-p|maple7lake|list → tool|-P|25575|-p|***|list
        tool|cf|login|-u|me|-p|Maple-lake-1 → tool|cf|login|-u|me|-p|***
        tool|-p|maple2024|f → tool|-p|***|f
        tool|-k|s3cret|f → tool|-k|***|f
        tool|-C|me:Maple7lake|h → tool|-C|me:***|h
        tool|auth|corp/me:maple#7lake@h → tool|auth|corp/me:***
        tool|+rcon_password|maple|+map|m → tool|+rcon_password|***|+map|m
        tool|++password|maple → tool|++password|***
        tool|credential|create|n|-value|maple → tool|credential|create|n|-value|***
        tool|create-secret|n|--data|maple → tool|create-secret|n|--data|***
        tool|api-key|add|key=maple7lake → tool|api-key|add|key=***
        tool|change-password|me|--current|maple7 → tool|change-password|me|--current|***
        tool|create|user|me|m4ple → tool|create|user|me|***
        tool|--remotepass=maple → tool|--remotepass=***
        tool|--passwort=maple|--kennwort|maple → tool|--passwort=***|--kennwort|***
        tool|db_password|Maple-lake-7 → tool|db_password|***
        tool|unlock|maple7lake → tool|unlock|***
        tool|--dsn|me:maple@tcp(h:1)/d → tool|--dsn|me:***@tcp(h:1)/d
        tool|['password'=>bcrypt('maple')] → tool|['password'=>bcrypt('***')]
        tool|set_env(default_pass, <<"maple">>) → tool|set_env(default_pass, <<"***">>)
        tool|--electrum-seed|abbey tuesday wobbly oven sober nightly uncle lodge → tool|--electrum-seed|***
        docker|run|-e|ARGS=--requirepass maple → docker|run|-e|ARGS=--requirepass ***
        curl|-H|Authentication: Bearer 0123456789abcdefghij → curl|-H|Authentication: Bearer ***
        tool|--username=me|-p|maple7lake → tool|--username=me|-p|***
        tool|login|me|Maple7lake → tool|login|me|***
        tool|registry:login|host|me|Maple7lake → tool|registry:login|host|me|***
        tool|users|add|me|Maple7lake → tool|users|add|me|***
        tool|app:create-user|me|me@h.example|Maple7lake → tool|app:create-user|me|me@h.example|***
        tool|--add-local-user|me:maple7lake → tool|--add-local-user|me:***
        tool|--user=me:maple7lake → tool|--user=me:***
        tool|-keystorepass|maple → tool|-keystorepass|***
        tool|<password>maple</password> → tool|<password>***</password>
        tool|sync|me:maple7lake@h.example:/srv → tool|sync|me:***@h.example:/srv
        tool|login|--client-id=0123456789abcdef0123 → tool|login|--client-id=0123456789abcdef0123
        curl|https://h.example/deploy/id?key=maple7lake → curl|https://h.example/deploy/id?key=***
        sh|-c|tool --header="Authorization=Bearer maple" → sh|-c|tool --header="Authorization=Bearer ***"
        "#,
    );
    assert_eq!(
        masked("sh|-c|cat > f <<E\n[a]\napi_key = maple7lake\nE"),
        "sh|-c|cat > f <<E\n[a]\napi_key = ***\nE"
    );
    for line in [
        "sudo|-u|me|mkdir|-p|build/maple7",
        "docker|run|-u|me|-p|8080:80|image",
        "psql|-U|me|-p|5433",
        "mysql|-u|root|-p|shop2",
        "wget|-U|Mozilla5|-P|Down2",
        "npm|run|login|Maple7lake",
        "mount|-o|credentials=/k/smb,uid=1000|//h/s",
        "vault|login|-method=oidc|role=ci",
        "etcd|--auth-token=simple",
        "squeue|-u|me|-p|gpu",
        "tool|-u|me|-p|8080",
        "tool|--password|path/to/key",
        "tool|image|org/app:1.2.3",
        "tool|--bypass=list",
        "ollama|run|m|write a password policy",
        "steamcmd|+login|anonymous|+app_update|740",
        "snmpget|-v2c|-c|public|h",
        "tool|random_password.db1|random_password.db2",
    ] {
        assert_eq!(masked(line), line);
    }
}

/// The CPU time of masking one command line: the shortest of five attempts.
fn cost(argv: &Argv) -> std::time::Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    let now = || std::time::Duration::from(nix::time::clock_gettime(clock).unwrap());
    let mut redactor = redactor();
    let mut once = || {
        let before = now();
        redactor.masked_argv(argv.clone());
        now() - before
    };
    (0..5).map(|_| once()).min().unwrap()
}

#[test]
fn masking_takes_time_linear_in_the_command_line() {
    for unit in [
        "token=a;",
        "(token=a",
        "?a_token=x",
        "x=token=",
        "token=\"",
        "token='a ",
        "a'b\"",
        "token=a|",
        "--token|a|",
        "{\"token\":\"",
        "://a:b",
        "://a:b@",
        "eyJaaaaaaaa",
        "sk-",
        "a: b ",
        "Authorization: a ",
        "password: a b\n",
        "password: a\\n",
        "token='",
        "token: \"",
        "token:\\\"",
        "echo a | sudo -S ",
        "echo a|chpasswd;",
        "echo 'a",
        "password '",
        "login a password b ",
        "identified by ",
        "config|token|",
        "set|set-token|",
        "hvs.hvs.aaaaaaaaaaaaaaaaaaaa",
        "htpasswd|-b|",
        "pulumi|config|set|a|",
        "mc|alias|set|a|b|c|",
        "connect('a',",
        "name=password,value=a,",
        "a <<< ",
        "s/a/b/|",
        "curl|-b|a|",
        "https://aaaaaaaaaaaaaaaa1",
        "-----BEGIN PRIVATE KEY-----",
        "codecov.io/bash -t aaaaaaaaaaaaaaaaaaaa ",
        "http|token:a|",
        "echo a > password;",
        "login <<a\na\na\n",
        "https://h/hook/a1?key=a ",
        "users|add|a|",
        "-u|a|-p|",
        "create-secret|--data|a|",
        "-P|1|-p|a1b2c|",
        "me:a@tcp(",
        "a=b,",
        "x=\"token=a b\" ",
        "<password>a</password>",
        "a:1:a:a:a\n",
        "token = a\n",
        "key='token' value='a' ",
        "a:a1b2@h/|",
        "a=b ",
    ] {
        let argv = |count| {
            let line = unit.repeat(count) + "token=";
            Argv::from_args(line.split('|'))
        };
        // A rule that takes quadratic time would need 16 times as long for four times the length.
        let (short, long) = (cost(&argv(4_000)), cost(&argv(16_000)));
        assert!(
            long < 8 * short,
            "{unit}: {short:?}, four times as many {long:?}"
        );
    }
}

#[test]
fn what_is_no_secret_stays() {
    for line in [
        "cc|-c|-O2|-DNDEBUG|-Iinclude|-o|token.o|token.c",
        "cc|-DMAX_TOKENS=3|keys.c|-fpass-plugin=x",
        "clang|-Rpass=inline|monkey.c",
        "env|PWD=/src|OLDPWD=/|KEYMAP=de|AUTHOR=me|AWS_ACCESS_KEY_ID=AKIAEXAMPLE",
        "docker|login|--password-stdin|registry",
        "x|--token-file|/run/token|--password-file=/run/pw",
        "x|--no-password|file",
        "x|--password|--verbose",
        "wget|https://h:8080/p|http://[::1]:80/",
        "git|clone|git@github.com:x/y.git",
        "make|-p|mysql.o",
        "sh|-c|echo key: value; echo \"done\"",
        "",
    ] {
        assert_eq!(masked(line), line);
    }
}

#[test]
fn a_cut_argv_stays_cut_and_its_last_url_keeps_no_password() {
    let argv = Argv {
        bytes: b"git\0https://me:hunt".as_slice().into(),
        full_len: Some(40),
    };
    let kept = redactor().masked_argv(argv);
    assert_eq!(&*kept.bytes, b"git\0https://me:***");
    assert!(kept.truncated());
    assert_eq!(kept.full_len, Some(40 - 1));
}

#[test]
fn own_patterns_come_on_top_or_alone() {
    let argv = Argv::from_args(["deploy", "id-1234", "user=bob", "--token=x"]);
    let own = vec![pattern("id-[0-9]+").unwrap(), pattern("user=(.*)").unwrap()];
    let kept = Redactor::new(true, own.clone()).masked_argv(argv.clone());
    assert_eq!(&*kept.bytes, b"deploy\0***\0user=***\0--token=***\0");
    let mut alone = Redactor::new(false, own);
    let kept = alone.masked_argv(argv.clone());
    assert_eq!(&*kept.bytes, b"deploy\0***\0user=***\0--token=x\0");
    assert_eq!(alone.masked(), 2);
    let kept = Redactor::new(false, Vec::new()).masked_argv(argv.clone());
    assert_eq!(kept, argv);
}

fn masked_event(redactor: &mut Redactor, kind: LifeKind) -> LifeKind {
    let event = LifeEvent {
        time: Ktime(7),
        cpu: None,
        kind,
    };
    Masked::new(event, redactor).unwrap().into_inner().kind
}

#[test]
fn names_of_tasks_that_are_not_recorded_are_masked() {
    let outsider = Outsider {
        comm: Comm::new(b"id-1234"),
        ..Outsider::default()
    };
    let kind = LifeKind::Outsider(Box::new(outsider));
    let mut redactor = Redactor::new(false, vec![pattern("id-[0-9]+").unwrap()]);
    let kind = masked_event(&mut redactor, kind);
    let LifeKind::Outsider(outsider) = kind else {
        panic!("{kind:?}")
    };
    assert_eq!(outsider.comm, Comm::new(b"***"));
}

#[test]
fn the_command_itself_is_masked_too() {
    let command = [b"x".to_vec(), b"--token".to_vec(), b"abc".to_vec()];
    let kept = redactor().masked_command(&command);
    assert_eq!(kept, [b"x".to_vec(), b"--token".to_vec(), b"***".to_vec()]);
}

#[test]
fn all_texts_of_a_mark_are_masked() {
    let text = || b"--password=hunter2".as_slice().into();
    let kind = LifeKind::Mark(Mark {
        name: text(),
        point: Point::Begin,
        ago: 0,
        kind: text(),
        result: text(),
        id: text(),
        pid: None,
        tid: None,
    });
    let kind = masked_event(&mut redactor(), kind);
    let LifeKind::Mark(mark) = kind else {
        panic!("{kind:?}")
    };
    for text in [mark.name, mark.kind, mark.result, mark.id] {
        assert_eq!(&*text, b"--password=***");
    }
}

/// Tests that the output of a program is treated as text: a word in the output is no secret, unless the output goes to
/// a file.
#[test]
fn printed_words_are_no_secrets() {
    check(
        r#"
        echo|token=expired → echo|token=expired
        echo|token=a1b2c → echo|token=***
        sh|-c|echo "token: refresh" → sh|-c|echo "token: refresh"
        sh|-c|echo token=letmein > f → sh|-c|echo token=*** > f
        sh|-c|echo token=letmein >> .env; ls → sh|-c|echo token=*** >> .env; ls
        sh|-c|echo token=letmein >&2 → sh|-c|echo token=letmein >&2
        sed|s/token=[^&]*/token=X/g|f → sed|s/token=[^&]*/token=X/g|f
        sed|s/password=.*/password=letmein/|f → sed|s/password=.*/password=letmein/|f
        sed|-i|s/password=.*/password=letmein/|f → sed|-i|s/password=.*/password=***/|f
        npm|pkg|set|scripts.token=node token.js → npm|pkg|set|scripts.token=node token.js
        x|token=expired → x|token=expired
        x|--token=[Token]|--secret=v.tmpl → x|--token=[Token]|--secret=v.tmpl
        "#,
    );
    let script = "echo token=letmein | tee -a .env";
    let argv = redactor().masked_argv(Argv::from_args(["sh", "-c", script]));
    assert!(!String::from_utf8_lossy(&argv.bytes).contains("letmein"));
    let yaml = "cat >f <<E\ndb:\n  password: letmein\nE";
    let argv = redactor().masked_argv(Argv::from_args(["sh", "-c", yaml]));
    assert!(!String::from_utf8_lossy(&argv.bytes).contains("letmein"));
}

/// Tests that make's jobserver is not masked as a secret. Each make passes the jobserver's address to the makes that it
/// runs, by a variable and by an option.
#[test]
fn a_jobserver_is_no_secret() {
    for line in [
        "make|-j8|--jobserver-auth=fifo:/tmp/GMfifo36257",
        "make|--jobserver-auth=3,4|--jobserver-fds=3,4|all",
        "env|MAKEFLAGS= -j8 --jobserver-auth=fifo:/tmp/GMfifo36257|make",
        "env|CARGO_MAKEFLAGS=-j --jobserver-fds=R,W --jobserver-auth=R,W|cargo|build",
        "sh|-c|MAKEFLAGS='w -j --jobserver-auth=fifo:/tmp/GMfifo9' make -C sub",
        "make|--jobserver-auth|fifo:/tmp/GMfifo36257",
    ] {
        assert_eq!(masked(line), line);
    }
}

/// Tests that a script is masked by the same rules as the arguments of a program.
#[test]
fn users_in_scripts_are_masked() {
    check(
        r#"
        ctr|images|pull|--user|ci:pikach00|h/x → ctr|images|pull|--user|ci:***|h/x
        sh|-c|ctr images pull --user ci:pikach00 h/x → sh|-c|ctr images pull --user ci:*** h/x
        sh|-c|./upload -u ci:pikach00 → sh|-c|./upload -u ci:***
        "#,
    );
}

#[test]
fn a_mask_ends_before_the_next_variable() {
    check(
        r#"
        ansible|all|-e|ansible_password=X9z connection=winrm port=5986 → ansible|all|-e|ansible_password=*** connection=winrm port=5986
        env|PASSWORD=two words=x and more → env|PASSWORD=***
        swaks|--auth|LOGIN|--auth-user|ci|--auth-password|hunter2 → swaks|--auth|LOGIN|--auth-user|ci|--auth-password|***
        cmake|-DSECRET_STORAGE=libsecret|-DTOKEN_ENGINE=jwt-rs → cmake|-DSECRET_STORAGE=libsecret|-DTOKEN_ENGINE=jwt-rs
        vault|policy|write|ci-token|policies/ci.hcl → vault|policy|write|ci-token|policies/ci.hcl
        "#,
    );
}

#[test]
fn secrets_of_single_programs_are_masked() {
    let code = "k0TcgnfhzEYbNWHv2dBk8zmm";
    for (line, want) in [
        (
            "heroku|config:set|X=C|LEVEL=debug",
            "heroku|config:set|X=***|LEVEL=debug",
        ),
        ("bot|C.p2Go6x.C3nfhTcgh", "bot|***"),
        // HTTPie's headers (`NAME:VALUE`) are recognized by their names. The value `pikaChu` has too few digits to look
        // like a token.
        (
            "http|POST|h/v1|X-API-Key:pikaChu|name=x",
            "http|POST|h/v1|X-API-Key:***|name=x",
        ),
        ("xh|h|X-Auth-Token:C", "xh|h|X-Auth-Token:***"),
        (
            "https|h|Accept:text/html|Token-Type:jwt",
            "https|h|Accept:text/html|Token-Type:jwt",
        ),
        (
            "conda|install|-c|https://h/t/C/stable|x",
            "conda|install|-c|https://h/t/***/stable|x",
        ),
        (
            "curl|https://forum.example.org/t/how-to-rotate-a-leaked-token/123",
            "curl|https://forum.example.org/t/how-to-rotate-a-leaked-token/123",
        ),
        (
            "sh|-c|bash <(curl -s https://codecov.io/bash) -t C -f x",
            "sh|-c|bash <(curl -s https://codecov.io/bash) -t *** -f x",
        ),
        (
            "env|BW_SESSION=C/C+8==|bw|sync",
            "env|BW_SESSION=***|bw|sync",
        ),
        ("x|--cookie|session=C", "x|--cookie|session=***"),
        ("x|--cookie=session=C|y", "x|--cookie=session=***|y"),
        (
            "x|http://h/query?u=a&p=pw9&q=x",
            "x|http://h/query?u=a&p=***&q=x",
        ),
        ("x|http://h/page?p=pw9&u=a", "x|http://h/page?p=***&u=a"),
        ("x|http://h/page?p=12", "x|http://h/page?p=12"),
        (
            "vault|write|sys/license|text=C",
            "vault|write|sys/license|text=***",
        ),
        (
            "openssl|kdf|-kdfopt|digest:SHA256|-kdfopt|pass:pw",
            "openssl|kdf|-kdfopt|digest:SHA256|-kdfopt|pass:***",
        ),
        (
            "git|-c|http.extraHeader=Authorization: Basic C|pull",
            "git|-c|http.extraHeader=Authorization: ***|pull",
        ),
        (
            "bazel|--remote_header=Authorization=Bearer C",
            "bazel|--remote_header=Authorization=Bearer ***",
        ),
    ] {
        assert_eq!(masked(&line.replace('C', code)), want.replace('C', code));
    }
}
