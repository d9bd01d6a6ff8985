@_exported public import VencejoMessages
