// A default value that is overridden later.
class Greeting { string salutation = "Hi"; string name = "world"; string text = salutation # ", " # name # "!"; }
def plain : Greeting; def formal : Greeting { let salutation = "Good day"; }
class Polite<string who> : Greeting { let name = who; let salutation = "Dear"; }
def letter : Polite<"reader">; let salutation = "Hello" in def top : Polite<"all">;
