# Lists of cells that cannot be right end with one sentence that names the line; what FILE holds stays.
printf '{"id":"%s","text":"The fox jumps over Reginald.","ask":" {question}"}\n' a b >c.jsonl
printf '{"id":"q%s","context":"%s","split":"%s","text":"Who?"}\n' 1 a train 2 a test 3 b train >q.jsonl
try() {
	printf "$1" >cells.jsonl
	shift
	evp-profile c.jsonl q.jsonl --model "$DATA/tiny.gguf" -q --cells cells.jsonl -o p.h5 "$@" 2>&1
	echo "status $?"
}
header='{"evp":"cells","version":1}\n'
try '{"context":"z","configs":["none"],"questions":["q1"]}\n'
try '{"context":"a","configs":["none"],"questions":["q9"]}\n'
try '{"context":"a","configs":["none"],"questions":["q3"]}\n'
try '{"context":"a","configs":[],"questions":["q1"]}\n'
try '{"context":"a","configs":["none"],"questions":[]}\n'
try '{"context":"a","configs":"none","questions":["q1"]}\n'
try '{"context":"a","configs":[1],"questions":["q1"]}\n'
try '{"context":"a","configs":["knorm:drop=0.5"],"questions":["q1","q2","q1"]}\n'
try '{"context":"a","configs":["knorm:drop=0.5"],"questions":["q1"]}\n{"context":"a","configs":["knorm:drop=0.5"],"questions":["q1"]}\n'
try '{"context":"a","configs":["knorm:drop=0.1..0.9/0.4"],"questions":["q1"]}\n'
try '{"context":"a","configs":["knorm:drop=0.50"],"questions":["q1"]}\n'
try '{"context":"a","configs":["no:such"],"questions":["q1"]}\n'
try '{"context":"a","configs":["kivi:bits=2"],"questions":["q1"]}\n'
try "$header"'{"context":"a","configs":["none"],"questions":["q1"]}\n'
try '{"context":"a","configs":["none"],"questions":["q1"]}\n' --configs none
# Nothing that is wanted is nothing to do.
try "$header"'{"end":true,"rows":0}\n'
[ -e p.h5 ] && echo 'there is a file'
true
