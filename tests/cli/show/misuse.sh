# two things at once
evp-show --check --json x
