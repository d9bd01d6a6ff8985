// Two people talk; each is this program, or its sibling in another language.
//
//	conversation ADDRESS FOLDER HANDLE guest        waits to be spoken to
//	conversation ADDRESS FOLDER HANDLE host GUEST   begins
//	conversation ADDRESS FOLDER HANDLE again        comes back later and shows what it holds
//
// FOLDER keeps what outlives the program. Scripts/examples runs it all.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"

	chatv1 "vencejo.example/gen/chat/v1"
)

const count = 20

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// heard waits for a message with a text from somebody.
func heard(me *Messenger, what, sender, text string) (string, Message) {
	chat, message, err := me.Find(what, func(_ string, message Message) bool {
		return message.Sender == sender && message.Text == text
	})
	must(err)
	return chat, message
}

func host(me *Messenger, guestHandle string) {
	var guest, direct, group string
	must(me.Call(func(ctx context.Context) error {
		found, err := me.chat.SearchProfiles(ctx, &chatv1.SearchProfilesRequest{Query: guestHandle})
		if err == nil {
			guest = found.Profiles[0].User
		}
		return err
	}))
	create := func(chat *chatv1.Chat) (name string) {
		request := &chatv1.CreateChatRequest{RequestId: newID(), Members: []string{guest}, Chat: chat}
		must(me.Call(func(ctx context.Context) error {
			created, err := me.chat.CreateChat(ctx, request)
			name = created.GetChat().GetName()
			return err
		}))
		return name
	}
	direct = create(&chatv1.Chat{Kind: chatv1.ChatKind_CHAT_KIND_DIRECT})
	group = create(&chatv1.Chat{Kind: chatv1.ChatKind_CHAT_KIND_GROUP, Title: "Sunday"})

	// Typing is told to who listens now, and to nobody else: the guest says when.
	heard(me, "the guest's first word", guest, "I am here")
	must(me.Call(func(ctx context.Context) error {
		_, err := me.chat.SendTyping(ctx, &chatv1.SendTypingRequest{
			Chat: direct, State: chatv1.TypingState_TYPING_STATE_TYPING})
		return err
	}))
	heard(me, "an answer to typing", guest, "you are typing")
	must(me.Send(Outgoing{Chat: direct, Text: "hola"}))
	_, hola := heard(me, "the own message", me.state.User, "hola")
	must(me.Wait("reaction, reply and receipt", func() bool {
		replied := false
		for _, message := range me.state.Messages[direct] {
			replied = replied || message.ReplyTo == hola.Name && message.Text == "hola, host"
		}
		return replied && me.state.Messages[direct][hola.Sequence].Reaction == "👍" &&
			me.state.Markers[direct][guest] >= hola.Sequence
	}))
	fmt.Println("heard reaction, reply and receipt")

	must(me.Call(func(ctx context.Context) error {
		_, err := me.chat.EditMessage(ctx, &chatv1.EditMessageRequest{
			Name: hola.Name, RequestId: newID(), Content: &chatv1.MessageContent{
				Kind: &chatv1.MessageContent_Text{Text: &chatv1.TextContent{Text: "¡hola!"}}}})
		return err
	}))
	must(me.Send(Outgoing{Chat: direct, Text: "oops"}))
	_, slip := heard(me, "the slip", me.state.User, "oops")
	heard(me, "that the slip was seen", guest, "oops?")
	must(me.Call(func(ctx context.Context) error {
		_, err := me.chat.DeleteMessages(ctx, &chatv1.DeleteMessagesRequest{
			Parent: direct, RequestId: newID(), Scope: chatv1.DeleteScope_DELETE_SCOPE_FOR_EVERYONE,
			Ranges: []*chatv1.SequenceRange{
				{FirstSequence: slip.Sequence, LastSequence: slip.Sequence}}})
		return err
	}))
	heard(me, "that edit and deletion were seen", guest, "I saw nothing")

	// A file, over a network that goes away in the middle.
	file := make([]byte, 256*1500)
	for i := range file {
		file[i] = byte(i)
	}
	upload := newID()
	me.Upload(file, "numbers.bin", upload, len(file)/2)
	attachment, err := me.Upload(file, "numbers.bin", upload, -1)
	must(err)
	must(me.Send(Outgoing{Chat: direct, Text: "numbers", Attachment: attachment}))
	heard(me, "the file's digest", guest, fmt.Sprintf("got %x", sha256.Sum256(file)))
	fmt.Println("the file arrived")

	fmt.Println("restart the server")
	for number := 1; number <= count; number++ {
		must(me.Send(Outgoing{Chat: group, Text: fmt.Sprint("number ", number)}))
	}
	heard(me, "the count", guest, fmt.Sprint(count, " numbers"))
	must(me.Send(Outgoing{Chat: direct, Text: "bye"}))
	heard(me, "good-bye", guest, "bye, host")
}

func guest(me *Messenger) {
	// A system message tells that there is a group.
	group, _, err := me.Find("a group", func(_ string, message Message) bool {
		return message.Sender == ""
	})
	must(err)
	must(me.Send(Outgoing{Chat: group, Text: "I am here"}))
	must(me.Wait("somebody to type", func() bool { return len(me.typing) > 0 }))
	direct, other := me.typing[0].Chat, me.typing[0].User
	must(me.Send(Outgoing{Chat: direct, Text: "you are typing"}))
	_, hola := heard(me, "a greeting", other, "hola")
	must(me.Call(func(ctx context.Context) error {
		_, err := me.chat.SetReaction(ctx, &chatv1.SetReactionRequest{Message: hola.Name, Emoji: "👍"})
		return err
	}))
	must(me.Call(func(ctx context.Context) error {
		_, err := me.chat.MarkRead(ctx, &chatv1.MarkReadRequest{
			Chat: direct, UpToSequence: hola.Sequence})
		return err
	}))
	must(me.Send(Outgoing{Chat: direct, Text: "hola, host", ReplyTo: hola.Name}))

	_, slip := heard(me, "a slip", other, "oops")
	must(me.Send(Outgoing{Chat: direct, Text: "oops?"}))
	must(me.Wait("edit and deletion", func() bool {
		messages := me.state.Messages[direct]
		return messages[hola.Sequence].Text == "¡hola!" && messages[slip.Sequence].Text == ""
	}))
	must(me.Send(Outgoing{Chat: direct, Text: "I saw nothing"}))

	_, file, err := me.Find("a file", func(_ string, message Message) bool {
		return message.Attachment != ""
	})
	must(err)
	whole, err := me.Download(file.Attachment, 0, 0)
	must(err)
	part, err := me.Download(file.Attachment, 1000, 500)
	must(err)
	if !bytes.Equal(part, whole[1000:1500]) {
		log.Fatal("a range is another")
	}
	must(me.Send(Outgoing{Chat: direct, Text: fmt.Sprintf("got %x", sha256.Sum256(whole))}))

	heard(me, "the last number", other, fmt.Sprint("number ", count))
	next := 1
	for _, line := range me.held() {
		if line.chat == group && strings.HasPrefix(line.Text, "number ") {
			if line.Text != fmt.Sprint("number ", next) {
				log.Fatalf("not each number once and in order: %s came for %d", line.Text, next)
			}
			next++
		}
	}
	must(me.Send(Outgoing{Chat: direct, Text: fmt.Sprint(count, " numbers")}))
	heard(me, "good-bye", other, "bye")
	must(me.Send(Outgoing{Chat: direct, Text: "bye, host"}))
	heard(me, "the own good-bye", me.state.User, "bye, host")
	history, err := me.History(direct)
	must(err)
	held := map[string]bool{}
	for _, line := range me.held() {
		held[line.Name] = true
	}
	for _, message := range history {
		if !held[message.Name] {
			log.Fatalf("the cache does not hold %s", message.Name)
		}
	}
}

type line struct {
	chat string
	Message
}

// held is what the cache holds, in order.
func (m *Messenger) held() (lines []line) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for chat, messages := range m.state.Messages {
		for _, message := range messages {
			lines = append(lines, line{chat, message})
		}
	}
	sort.Slice(lines, func(i, j int) bool {
		if lines[i].chat != lines[j].chat {
			return lines[i].chat < lines[j].chat
		}
		return lines[i].Sequence < lines[j].Sequence
	})
	return lines
}

func main() {
	address, folder, handle, role := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	me, err := Open(address, folder, handle, "correct horse battery staple")
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	must(me.SignIn(ctx))
	fmt.Println("signed in as", me.state.User)
	go func() { must(me.Follow(ctx)) }()
	switch role {
	case "host":
		host(me, os.Args[5])
	case "guest":
		guest(me)
	default:
		must(me.Wait("the end of what was missed", func() bool { return me.caughtUp }))
		if me.resets > 0 {
			fmt.Println("reset")
		} else {
			fmt.Println("resumed")
		}
		for _, line := range me.held() {
			fmt.Printf("%s\t%d\t%s\n", line.chat, line.Sequence, line.Text)
		}
	}
	fmt.Println("done")
}
