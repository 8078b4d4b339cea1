# Mistyped commands, tools without arguments on a terminal, and missing operands.
. "$TOP/tests/cli/typed/said.inc"
said evp paln
said evp profil
said evp laod
said evp xyzzy
said evp demo nope --x
[ -e nope ] && echo 'the folder was made'
evp -v | cut -d' ' -f1,2
echo 'the order of the pipeline:'
evp help | sed -n 's/^  \([a-z]*\) .*/\1/p' | tr '\n' ' '
echo
for tool in plan score pack profile report; do said evp-$tool; done
said evp-profile contexts.jsonl
said evp-pack manifest.jsonl
echo 'on a terminal:'
python3 - import qgen show load tiers 'load --rollback' <<'END'
import os, pty, subprocess, sys
for words in sys.argv[1:]:
    main, terminal = pty.openpty()
    p = subprocess.run(["evp-" + words.split()[0], *words.split()[1:]], stdin=terminal, capture_output=True, text=True, timeout=20)
    print(f"evp-{words} -> {p.stderr.splitlines()[0]} [{p.returncode}]")
    os.close(main)
    os.close(terminal)
END
