// Underscored, as Swift has no other way to say it: who imports the stubs has the messages too.
@_exported public import VencejoMessages
