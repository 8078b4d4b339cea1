# nothing to show
evp-show
