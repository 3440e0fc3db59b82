"""How answers are judged: the rules that a specification carries."""
