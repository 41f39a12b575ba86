// A step of a Jenkins shared library: this directory, as a repository that is configured as a global library.
//
//     @Library('tr') _
//     trRecord 'make test'
//     trRecord script: 'make test', path: '/opt/tr/bin/tr'
def call(Map given) {
    withEnv(["TR_COMMAND=${given.script}", "TR_PROGRAM=${given.path ?: 'tr-trace'}"]) {
        try {
            sh '''
                rm -rf tr-recording
                mkdir -p tr-recording
                if ! command -v "$TR_PROGRAM" >/dev/null; then
                    echo "tr: not installed here; the step is not recorded" >&2
                    exec sh -e -c "$TR_COMMAND"
                fi
                status=0
                "$TR_PROGRAM" record --best-effort -o tr-recording/trace.bin -- sh -e -c "$TR_COMMAND" || status=$?
                "$TR_PROGRAM" report --max-memory=512M --max-time=2m -o tr-recording/report.html tr-recording/trace.bin || :
                "$TR_PROGRAM" summary --max-memory=512M --max-time=2m tr-recording/trace.bin || :
                exit "$status"
            '''
        } finally {
            archiveArtifacts artifacts: 'tr-recording/*', allowEmptyArchive: true
        }
    }
}

def call(String script) {
    call(script: script)
}
