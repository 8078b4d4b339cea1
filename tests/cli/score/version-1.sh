# A table of version 1 is scored again: the new one has what version 2 added to scores, and nothing that nobody knows.
evp-score -q "$DATA/table.h5" --embedder "$DATA/minibert" -o table.h5
evp-show --json table.h5 | grep -o '"train_std":[^,]*,"n_train_questions":[^,]*\|"question_origins":"[^"]*"\|"profiled_at":[^}]*' | sort | uniq -c
