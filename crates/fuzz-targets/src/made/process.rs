//! What a process shows of itself: performance data, command lines, files of /proc; and requests.

pub fn perfdata() -> Vec<Vec<u8>> {
    let texts = [
        ("sun.rt.javaCommand", "com.example.Main --port 80"),
        ("java.property.java.version", "21.0.8"),
        ("java.rt.vmArgs", "-Xmx1g -Djava.io.tmpdir=/tmp"),
        ("java.rt.vmFlags", ""),
    ];
    let text = |name: &str, text: &str| {
        let values: Vec<u8> = text.bytes().chain([0]).collect();
        entry(name, values.len() as u32, b'B', &values)
    };
    let entries: Vec<Vec<u8>> = texts
        .iter()
        .map(|(name, value)| text(name, value))
        .chain([entry("sun.rt.safepointTime", 0, b'J', &4711_u64.to_le_bytes())])
        .collect();
    let mut file = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
    file.extend([0; 16]);
    file.extend(32_u32.to_le_bytes());
    file.extend((entries.len() as u32).to_le_bytes());
    file.extend(entries.concat());
    vec![file]
}

fn entry(name: &str, length: u32, kind: u8, value: &[u8]) -> Vec<u8> {
    let value_at = 20 + name.len() + 1;
    let mut bytes = ((value_at + value.len()) as u32).to_le_bytes().to_vec();
    bytes.extend(20_u32.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend([kind, 0, 5, 1]);
    bytes.extend((value_at as u32).to_le_bytes());
    bytes.extend(name.bytes().chain([0]));
    bytes.extend(value);
    bytes
}

pub fn command_lines() -> Vec<Vec<u8>> {
    [
        "java\0-Xmx1g\0-cp\0/a b/c.jar\0com.acme.Main\0--port\080\0",
        "java\0@args\0-jar\0/srv/shop.jar\0--password=secret\0\0-cp 'a \\\n b' # note\n -Xrs",
        "java\0-XX:Flags=x\0-XX:VMOptionsFile=y\0-m\0a/b.C\0\0+DisableAttachMechanism\n-Xint",
        "java\0--disable-@files\0@x\0-Djava.io.tmpdir=/x\0--module=m\0\0https://u:pw@host/x?token=1",
        "/usr/lib/jsvc\0-J-Xrs\0-Xmx1g\0\0-Ddb.password=\"a b\" AWS_SECRET=x Authorization: Bearer y",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub fn process_files() -> Vec<Vec<u8>> {
    let stat = "7 (a b) c) S 1 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 33 0 4711 0 0\n";
    let status = "Name:\tjava\nUid:\t0\t7\t0\t0\nGid:\t0\t7\t0\t0\nNSpid:\t7\t1\nSeccomp:\t2\n\
                  SigCgt:\t2000000181005ccf\n";
    let maps = "7f00-7f01 r-xp 00000000 08:01 42 /a/usr/lib/server/libjvm.so\n\
                7f01-7f02 r--p 00000000 08:01 42 /lib/libc.so.6\n\
                7f02-7f03 r--s 00000000 08:01 42 /tmp/hsperfdata_me/7 (deleted)\n\
                7f03-7f04 r-xp 00000000 08:01 42 /tmp/x\\012y/libtare_agent-0123456789abcdef.so\n";
    let unix = "Num RefCount Protocol Flags Type St Inode Path\n\
                0: 2 0 10000 1 01 42 /tmp/.java_pid7\n1: 3 0 0 1 03 43 @abstract\n";
    let ids = "0 1000 1\n1 100000 65536\n";
    let answers = [
        "0\nreturn code: 0\n",
        "0\nDynamic agent loading is not enabled",
        "100\n/x.so: version `GLIBC_2.38' not found",
        "101\nonly permitted in the live phase",
    ];
    [&[stat, status, maps, unix, ids][..], &answers].concat().iter().map(|t| (*t).into()).collect()
}

pub fn requests() -> Vec<Vec<u8>> {
    [
        "GET /api/run?a=1&b=%C3%A4+c HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\
         Authorization: Bearer none\r\nSec-Fetch-Site: same-origin\r\n\r\n",
        "POST /api/open HTTP/1.1\r\nHost: localhost:80\r\nOrigin: http://localhost:80\r\n\
         Content-Length: 9\r\nConnection: close\r\n\r\n{\"a\": 12}GET / HTTP/1.0\r\n\r\n",
        "HEAD /x.js HTTP/1.0\r\nHost: [::1]:80\r\nAccept: */*\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
