// Uses the binary codec and nothing else: Scripts/bench/size looks at what it is linked with.

import VencejoProtobuf

let timestamp = try Google.Timestamp(serializedBytes: [0x08, 0x01])
print(timestamp.serializedBytes() == [0x08, 0x01], Google.Timestamp.fileDescriptor.path)
