// A client of Vencejo's messenger: a session, an outbox, a cache that misses nothing, files.
//
// Whatever must outlive the process is in one file, which each change replaces as a whole. Copy
// this into your program and throw away what you do not need; conversation.go shows it at work.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	authv1 "vencejo.example/gen/auth/v1"
	chatv1 "vencejo.example/gen/chat/v1"
)

const (
	chunkSize = 64 << 10
	// Without a word for two and a half heartbeats (20 s each), a stream is dead.
	silence = 50 * time.Second
)

// Message is what the cache holds of one.
type Message struct {
	Name, Sender, Text, Reaction, Attachment, ReplyTo string
	Sequence                                          int64
}

// Outgoing is a message in the outbox.
type Outgoing struct{ ID, Chat, Text, ReplyTo, Attachment string }

// State is all that outlives the process.
type State struct {
	User, RefreshToken, ResumeToken string
	// By chat and sequence.
	Messages map[string]map[int64]Message
	// By chat and user: how far they have read.
	Markers map[string]map[string]int64
	Outbox  []Outgoing
}

// Typing is somebody who types somewhere.
type Typing struct{ Chat, User string }

// Messenger is one signed-in device.
type Messenger struct {
	handle, password string
	file             string
	auth             authv1.AuthServiceClient
	chat             chatv1.ChatServiceClient

	mutex       sync.Mutex
	changed     *sync.Cond
	state       State
	accessToken string
	typing      []Typing
	caughtUp    bool
	resets      int
}

// Open connects, lazily, and reads the file in folder when there is one.
func Open(address, folder, handle, password string) (*Messenger, error) {
	// We pause between attempts ourselves: the channel need not do so, too, for long.
	pauses := grpcbackoff.DefaultConfig
	pauses.MaxDelay = 2 * time.Second
	connection, err := grpc.Dial(address, grpc.WithInsecure(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: time.Second}))
	if err != nil {
		return nil, err
	}
	m := &Messenger{
		handle: handle, password: password, file: filepath.Join(folder, "messenger.json"),
		auth: authv1.NewAuthServiceClient(connection),
		chat: chatv1.NewChatServiceClient(connection),
	}
	m.changed = sync.NewCond(&m.mutex)
	if kept, err := os.ReadFile(m.file); err == nil {
		if err := json.Unmarshal(kept, &m.state); err != nil {
			return nil, err
		}
	}
	if m.state.Messages == nil {
		m.forget()
	}
	return m, nil
}

func (m *Messenger) forget() {
	m.state.Messages = map[string]map[int64]Message{}
	m.state.Markers = map[string]map[string]int64{}
}

// save replaces the file in one step: after a crash there is the old one or the new one, never a
// mixture. Call it with the mutex held.
func (m *Messenger) save() error {
	kept, err := json.Marshal(m.state)
	if err != nil {
		return err
	}
	fresh, err := os.Create(m.file + ".new")
	if err != nil {
		return err
	}
	if _, err := fresh.Write(kept); err != nil {
		return err
	}
	if err := fresh.Sync(); err != nil {
		return err
	}
	if err := fresh.Close(); err != nil {
		return err
	}
	return os.Rename(m.file+".new", m.file)
}

// change changes the state, saves it and tells who waits.
func (m *Messenger) change(body func()) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	body()
	m.changed.Broadcast()
	return m.save()
}

// reason says why a call failed, in a word that programs may rely on; "" when nobody said.
func reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.Reason
		}
	}
	return ""
}

// newID makes a UUID of version 7: time first, so that ids sort as they were made.
func newID() string {
	var id [16]byte
	rand.Read(id[:])
	now := time.Now().UnixNano() / 1e6
	for i := 0; i < 6; i++ {
		id[i] = byte(now >> (40 - 8*uint(i)))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// backoff waits a random time up to half a second, doubled with each failure, up to 30 s.
type backoff struct{ most time.Duration }

func (b *backoff) wait() {
	if b.most == 0 {
		b.most = 500 * time.Millisecond
	}
	random, _ := rand.Int(rand.Reader, big.NewInt(int64(b.most)))
	time.Sleep(time.Duration(random.Int64()))
	if b.most *= 2; b.most > 30*time.Second {
		b.most = 30 * time.Second
	}
}

// The session.

// SignIn signs in by the refresh token of last time or by password, and makes the account when
// there is none.
func (m *Messenger) SignIn(ctx context.Context) error {
	if m.refresh(ctx) == nil {
		return nil
	}
	in, err := m.auth.SignIn(ctx, &authv1.SignInRequest{
		Credential: &authv1.SignInRequest_Password{Password: &authv1.PasswordCredential{
			Identifier: m.handle, Password: m.password}},
		DeviceLabel: "example in Go"})
	if err == nil {
		return m.signedIn(in.User, in.Tokens)
	}
	if reason(err) != "BAD_CREDENTIAL" {
		return err
	}
	up, err := m.auth.SignUp(ctx, &authv1.SignUpRequest{
		RequestId: newID(), Handle: m.handle, Password: m.password,
		DisplayName: strings.Title(m.handle), DeviceLabel: "example in Go"})
	if err != nil {
		return err
	}
	return m.signedIn(up.User, up.Tokens)
}

func (m *Messenger) signedIn(user *authv1.User, tokens *authv1.TokenPair) error {
	return m.change(func() {
		m.state.User = user.Name
		m.take(tokens)
	})
}

func (m *Messenger) take(tokens *authv1.TokenPair) {
	m.state.RefreshToken, m.accessToken = tokens.RefreshToken, tokens.AccessToken
}

// refresh fetches a new access token. The refresh token is for one use: its successor is kept at
// once.
func (m *Messenger) refresh(ctx context.Context) error {
	m.mutex.Lock()
	token := m.state.RefreshToken
	m.mutex.Unlock()
	if token == "" {
		return errors.New("no refresh token")
	}
	answer, err := m.auth.RefreshSession(ctx, &authv1.RefreshSessionRequest{RefreshToken: token})
	if err != nil {
		return err
	}
	return m.change(func() { m.take(answer.Tokens) })
}

// authorized adds the access token to what a call sends.
func (m *Messenger) authorized(ctx context.Context) context.Context {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+m.accessToken)
}

// Call makes a call in the user's name; it refreshes the session once when that is what it takes.
func (m *Messenger) Call(body func(context.Context) error) error {
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		err := body(m.authorized(ctx))
		if err == nil || attempt > 0 || reason(err) != "ACCESS_TOKEN_EXPIRED" || m.refresh(ctx) != nil {
			cancel()
			return err
		}
		cancel()
	}
}

// Sending.

// Send puts a message into the outbox and empties it: each message is sent once, though it may
// take many attempts. Its id makes a repeat harmless when only the answer was lost.
func (m *Messenger) Send(message Outgoing) error {
	message.ID = newID()
	if err := m.change(func() { m.state.Outbox = append(m.state.Outbox, message) }); err != nil {
		return err
	}
	return m.EmptyOutbox()
}

// EmptyOutbox sends what is left in the outbox, oldest first.
func (m *Messenger) EmptyOutbox() error {
	var pause backoff
	for {
		m.mutex.Lock()
		if len(m.state.Outbox) == 0 {
			m.mutex.Unlock()
			return nil
		}
		next := m.state.Outbox[0]
		m.mutex.Unlock()
		content := &chatv1.MessageContent{Kind: &chatv1.MessageContent_Text{
			Text: &chatv1.TextContent{Text: next.Text}}}
		if next.Attachment != "" {
			content.Kind = &chatv1.MessageContent_Media{Media: &chatv1.MediaContent{
				Attachments: []string{next.Attachment}, Caption: next.Text}}
		}
		err := m.Call(func(ctx context.Context) error {
			_, err := m.chat.SendMessage(ctx, &chatv1.SendMessageRequest{
				Parent: next.Chat, MessageId: next.ID, ReplyTo: next.ReplyTo, Content: content})
			return err
		})
		switch status.Code(err) {
		case codes.OK:
			pause = backoff{}
			if err := m.change(func() { m.state.Outbox = m.state.Outbox[1:] }); err != nil {
				return err
			}
		case codes.Unavailable, codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted:
			// Only what may go away is worth another attempt.
			pause.wait()
		default:
			return err
		}
	}
}

// Hearing.

// Follow subscribes again and again, each time from where the cache stands, until ctx ends.
func (m *Messenger) Follow(ctx context.Context) error {
	var pause backoff
	for ctx.Err() == nil {
		err := m.listen(ctx, &pause)
		m.mutex.Lock()
		m.caughtUp = false
		m.mutex.Unlock()
		if reason(err) == "ACCESS_TOKEN_EXPIRED" {
			m.refresh(ctx)
		} else if status.Code(err) == codes.Unauthenticated {
			return err
		}
		pause.wait()
	}
	return nil
}

func (m *Messenger) listen(ctx context.Context, pause *backoff) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	m.mutex.Lock()
	token := m.state.ResumeToken
	m.mutex.Unlock()
	stream, err := m.chat.Subscribe(m.authorized(ctx), &chatv1.SubscribeRequest{
		ResumeToken: token, IncludeEphemeral: true, AutoMarkDelivered: true,
		Snapshot: &chatv1.SnapshotOptions{ChatLimit: 100, MessagesPerChat: 100}})
	if err != nil {
		return err
	}
	var pending []*chatv1.SubscribeResponse
	for {
		frame, err := stream.Recv()
		if err != nil {
			return err
		}
		watchdog.Reset(silence)
		*pause = backoff{}
		switch event := frame.Event.(type) {
		case *chatv1.SubscribeResponse_Typing:
			m.mutex.Lock()
			m.typing = append(m.typing, Typing{event.Typing.Chat, event.Typing.User})
			m.changed.Broadcast()
			m.mutex.Unlock()
		case *chatv1.SubscribeResponse_Closing:
			time.Sleep(time.Duration(event.Closing.RetryDelay.GetSeconds()) * time.Second)
		default:
			pending = append(pending, frame)
		}
		// Frames up to a token are one change. What comes behind the last token, before a stream
		// breaks, comes again.
		if frame.ResumeToken != "" {
			if err := m.apply(pending, frame.ResumeToken); err != nil {
				return err
			}
			pending = nil
		}
	}
}

// apply takes frames and token in one step: neither a gap nor half a change can come of it.
func (m *Messenger) apply(frames []*chatv1.SubscribeResponse, token string) error {
	return m.change(func() {
		for _, frame := range frames {
			m.applyOne(frame)
		}
		m.state.ResumeToken = token
	})
}

// applyOne takes an event so that twice is as good as once; what it does not know it ignores.
func (m *Messenger) applyOne(frame *chatv1.SubscribeResponse) {
	switch event := frame.Event.(type) {
	case *chatv1.SubscribeResponse_Reset_:
		// The snapshot behind it replaces everything. The outbox stays.
		m.resets++
		m.forget()
	case *chatv1.SubscribeResponse_ChatSnapshot:
		for _, message := range event.ChatSnapshot.Messages {
			m.put(message)
		}
	case *chatv1.SubscribeResponse_MessageCreated:
		m.put(event.MessageCreated.Message)
	case *chatv1.SubscribeResponse_MessageUpdated:
		m.put(event.MessageUpdated.Message)
	case *chatv1.SubscribeResponse_MessagesDeleted:
		deleted := event.MessagesDeleted
		for _, span := range deleted.Ranges {
			for sequence, message := range m.state.Messages[deleted.Chat] {
				if sequence < span.FirstSequence || sequence > span.LastSequence {
					continue
				}
				if deleted.Scope == chatv1.DeleteScope_DELETE_SCOPE_FOR_EVERYONE {
					message.Text, message.Attachment, message.Reaction = "", "", ""
					m.state.Messages[deleted.Chat][sequence] = message
				} else {
					delete(m.state.Messages[deleted.Chat], sequence)
				}
			}
		}
	case *chatv1.SubscribeResponse_ReactionChanged:
		changed := event.ReactionChanged
		chat := strings.Split(changed.Message, "/messages/")[0]
		if message, known := m.state.Messages[chat][changed.Sequence]; known {
			message.Reaction = emoji(changed.Reactions)
			m.state.Messages[chat][changed.Sequence] = message
		}
	case *chatv1.SubscribeResponse_ReceiptMoved:
		moved := event.ReceiptMoved
		if m.state.Markers[moved.Chat] == nil {
			m.state.Markers[moved.Chat] = map[string]int64{}
		}
		if moved.ReadSequence > m.state.Markers[moved.Chat][moved.User] {
			m.state.Markers[moved.Chat][moved.User] = moved.ReadSequence
		}
	case *chatv1.SubscribeResponse_ChatRemoved:
		delete(m.state.Messages, event.ChatRemoved.Chat)
	case *chatv1.SubscribeResponse_CaughtUp:
		m.caughtUp = true
	}
}

func (m *Messenger) put(message *chatv1.Message) {
	chat := strings.Split(message.Name, "/messages/")[0]
	if m.state.Messages[chat] == nil {
		m.state.Messages[chat] = map[int64]Message{}
	}
	kept := Message{
		Name: message.Name, Sequence: message.Sequence, Sender: message.Sender,
		Text: message.Content.GetText().GetText(), Reaction: emoji(message.Reactions),
		ReplyTo: message.ReplyTo}
	if media := message.Content.GetMedia(); media != nil {
		kept.Text, kept.Attachment = media.Caption, media.Attachments[0]
	}
	m.state.Messages[chat][message.Sequence] = kept
}

func emoji(reactions []*chatv1.ReactionSummary) string {
	var all []string
	for _, reaction := range reactions {
		all = append(all, reaction.Emoji)
	}
	return strings.Join(all, " ")
}

// Looking.

// Wait returns once holds does, or fails after a minute. The mutex is held while holds looks.
func (m *Messenger) Wait(what string, holds func() bool) error {
	over := false
	timer := time.AfterFunc(time.Minute, func() {
		m.mutex.Lock()
		over = true
		m.changed.Broadcast()
		m.mutex.Unlock()
	})
	defer timer.Stop()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for !holds() {
		if over {
			return fmt.Errorf("%s waited in vain for %s", m.handle, what)
		}
		m.changed.Wait()
	}
	return nil
}

// Find waits for a message with these properties.
func (m *Messenger) Find(what string, holds func(chat string, message Message) bool) (
	chat string, found Message, err error,
) {
	err = m.Wait(what, func() bool {
		for name, messages := range m.state.Messages {
			for _, message := range messages {
				if holds(name, message) {
					chat, found = name, message
					return true
				}
			}
		}
		return false
	})
	return chat, found, err
}

// History reads all messages of a chat, oldest first, page by page from the newest.
func (m *Messenger) History(chat string) (messages []*chatv1.Message, err error) {
	for token := ""; ; {
		var page *chatv1.ListMessagesResponse
		err := m.Call(func(ctx context.Context) (err error) {
			page, err = m.chat.ListMessages(ctx, &chatv1.ListMessagesRequest{
				Parent: chat, PageSize: 20, PageToken: token})
			return err
		})
		if err != nil {
			return nil, err
		}
		messages = append(page.Messages, messages...)
		if token = page.OlderPageToken; token == "" {
			return messages, nil
		}
	}
}

// Files.

// Upload sends a file, or goes on where an upload with this id broke; it answers the attachment's
// name. At the offset `until`, when it is not negative, it breaks, as a network would.
func (m *Messenger) Upload(data []byte, name, id string, until int) (attachment string, err error) {
	offset := int64(0)
	err = m.Call(func(ctx context.Context) error {
		state, err := m.chat.GetAttachmentUpload(ctx, &chatv1.GetAttachmentUploadRequest{UploadId: id})
		if err == nil {
			offset = state.CommittedBytes
		}
		return err
	})
	if err != nil && reason(err) != "UPLOAD_NOT_FOUND" {
		return "", err
	}
	digest := sha256.Sum256(data)
	err = m.Call(func(ctx context.Context) error {
		// Leaving without CloseAndRecv gives the call up.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := m.chat.UploadAttachment(ctx)
		if err != nil {
			return err
		}
		stream.Send(&chatv1.UploadAttachmentRequest{Payload: &chatv1.UploadAttachmentRequest_Header{
			Header: &chatv1.AttachmentUploadHeader{
				UploadId: id, FileName: name, ContentType: "application/octet-stream",
				SizeBytes: int64(len(data)), Sha256: digest[:], Offset: offset}}})
		for at := int(offset); at < len(data); at += chunkSize {
			if until >= 0 && at >= until {
				return errors.New("the network went away")
			}
			end := at + chunkSize
			if end > len(data) {
				end = len(data)
			}
			chunk := &chatv1.UploadAttachmentRequest_Chunk{Chunk: data[at:end]}
			if stream.Send(&chatv1.UploadAttachmentRequest{Payload: chunk}) != nil {
				break // CloseAndRecv says why.
			}
		}
		answer, err := stream.CloseAndRecv()
		attachment = answer.GetAttachment().GetName()
		return err
	})
	return attachment, err
}

// Download fetches a file, or a range of it; the whole is checked against its digest.
func (m *Messenger) Download(name string, offset, limit int64) (data []byte, err error) {
	err = m.Call(func(ctx context.Context) error {
		stream, err := m.chat.DownloadAttachment(ctx, &chatv1.DownloadAttachmentRequest{
			Name: name, Offset: offset, Limit: limit})
		if err != nil {
			return err
		}
		var told []byte
		data = nil
		for {
			part, err := stream.Recv()
			if err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			if file := part.GetAttachment(); file != nil {
				told = file.Sha256
			}
			data = append(data, part.GetChunk()...)
		}
		digest := sha256.Sum256(data)
		if offset == 0 && limit == 0 && !bytes.Equal(digest[:], told) {
			return errors.New("the file came damaged")
		}
		return nil
	})
	return data, err
}
