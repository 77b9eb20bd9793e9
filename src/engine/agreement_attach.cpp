// SPDX-License-Identifier: BSD-3-Clause
// Exchanges 2 and 3: each member attaches all others, through /proc or by
// descriptors that come by mail.
#include <cerrno>

#include "base/tuning.hpp"
#include "engine/agreement.hpp"

namespace stretto::engine {

bool Agreement::attached(int rank) const {
  if (rank == bootstrap_.rank) return true;
  const shm::Attachment* const peer = process_.attachments.find(all_[rank].identity);
  return peer && peer->covers(all_[rank].segment_bytes);
}

bool Agreement::is_attached(int rank) const {
  const Locked locked(process_.lock);
  return attached(rank);
}

bool Agreement::complete() const {
  const Locked locked(process_.lock);
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (!attached(r)) return false;
  }
  return true;
}

// Maps the file of `fd` as the segment of `rank`, unless another thread has done so meanwhile.
bool Agreement::adopt(int rank, int fd) {
  const Locked locked(process_.lock);
  if (attached(rank)) {
    sys::close_descriptor(fd);
    return true;
  }
  shm::Attachment attachment;
  const Status mapped = shm::attachment_map(fd, all_[rank].segment_bytes, all_[rank].identity, &attachment);
  if (mapped == Status::ok && all_[rank].pid_namespace == mine_.pid_namespace)
    attachment.started = sys::start_time(all_[rank].pid);
  return add(mapped, attachment);
}

// Maps more of a segment whose beginning is mapped already, unless another thread has done so
// meanwhile.
bool Agreement::extend(int rank) {
  const Locked locked(process_.lock);
  if (attached(rank)) return true;
  const shm::Attachment* const known = process_.attachments.find(all_[rank].identity);
  if (!known) return false;
  shm::Attachment attachment;
  const Status mapped = shm::attachment_extend(*known, all_[rank].segment_bytes, &attachment);
  return add(mapped, attachment);
}

bool Agreement::add(Status mapped, shm::Attachment attachment) {
  if (mapped == Status::no_memory && sys::address_space().limit != ~std::uint64_t{0}) no_room_ = true;
  if (mapped != Status::ok) return false;
  if (process_.attachments.add(attachment)) return true;
  shm::attachment_unmap(&attachment);
  return false;
}

bool Agreement::attach_by_proc() {
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (is_attached(r) || extend(r)) continue;
    if (all_[r].pid_namespace != mine_.pid_namespace) continue;  // here the number names another process
    int fd = -1;
    if (sys::peer_descriptor_open(all_[r].pid, all_[r].descriptor, &fd) == 0) (void)adopt(r, fd);
  }
  return complete();
}

// Whether this process may read the memory of all peers. It tries once per peer, because ptrace
// scopes, seccomp filters and namespaces each forbid it in their own way.
bool Agreement::read_everybody() {
  const Locked locked(process_.lock);
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (r == bootstrap_.rank) continue;
    if (all_[r].pid_namespace != mine_.pid_namespace) return refuse(0);
    shm::Attachment* const peer = process_.attachments.find(all_[r].identity);
    if (!peer->tried) {
      std::uint64_t seen = 0;
      const int error = sys::peer_memory_read(all_[r].pid, all_[r].probe, &seen, sizeof seen);
      peer->tried = true;
      peer->readable = error == 0 && seen == all_[r].identity;
      peer->error = error != 0 ? error : ESRCH;  // ESRCH: another process has that number
    }
    if (!peer->readable) return refuse(peer->error);
  }
  return true;
}

bool Agreement::refuse(int error) {
  refused_ = true;
  error_ = error;
  return false;
}

bool Agreement::attach() {
  if (have_met()) {
    all_read_all_ = true;
    for (int r = 0; r < bootstrap_.size; ++r) all_read_all_ = all_read_all_ && all_[r].single_copy != 0;
    return true;
  }
  const bool found = attach_by_proc();
  reads_all_ = found && process_.settings.single_copy != SingleCopyChoice::off && read_everybody();
  if (everybody(found ? Reason::none : why_apart())) return meet();
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (words_[r] == static_cast<std::uint32_t>(Reason::address_space)) return decline(r, Reason::address_space);
  }
  sys::Mailbox box;
  const bool open = sys::mailbox_open(mailbox_of(bootstrap_.rank), &box) == 0;
  bool fine = everybody(open ? Reason::none : Reason::no_mailbox);
  if (fine) fine = everybody(attach_by_mail(box) ? Reason::none : why_apart());
  if (open) sys::mailbox_close(&box);
  return fine && meet();
}

// Called when all members have attached all others.
bool Agreement::meet() {
  const Locked locked(process_.lock);
  // If they differ, another thread has made the segment grow meanwhile.
  if (process_.announced == mine_.segment_bytes) process_.meetings.add(all_[0].instance, bootstrap_.size);
  process_.meetings.was_refused = process_.meetings.was_refused || !reads_all_;
  return true;
}

// Sends our descriptor to all members and adopts those that arrive, until none is missing. It sends
// and receives in turn, because queues of datagrams are short.
bool Agreement::attach_by_mail(const sys::Mailbox& box) {
  const std::uint64_t deadline = sys::now_ns() + kTuning.mail_patience_ns;
  int next = 0;
  for (;;) {
    const bool sent = mail_ours(box, &next);
    const bool received = mail_theirs(box);
    if (sent || received) continue;
    // Each member sends to all others, also to a member that lacks nothing. If that member left
    // earlier, its full mailbox would hold up the senders.
    const bool late = sys::now_ns() > deadline;
    if (next == bootstrap_.size && (late || letters_ >= bootstrap_.size - 1) && complete()) return true;
    if ((next == bootstrap_.size && out_of_reach_) || late) return false;
    sys::nap_ns(kTuning.opening_pause_ns);
  }
}

bool Agreement::mail_ours(const sys::Mailbox& box, int* next) {
  if (*next == bootstrap_.rank) ++*next;
  if (*next >= bootstrap_.size) return false;
  const int error = sys::mailbox_send(box, mailbox_of(*next), mine_.identity, mine_.descriptor);
  if (error == EAGAIN) return false;
  // All mailboxes are open. So this peer's is in another network namespace, where
  // nobody finds ours.
  if (error == ECONNREFUSED) {
    ++letters_;
    if (!is_attached(*next)) out_of_reach_ = true;
  }
  ++*next;  // it is sent, or refused: then that peer does not get it and says so
  return true;
}

bool Agreement::mail_theirs(const sys::Mailbox& box) {
  std::uint64_t from = 0;
  int fd = -1;
  if (sys::mailbox_receive(box, &from, &fd) != 0) return false;
  ++letters_;
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_[r].identity == from) {
      if (!adopt(r, fd)) out_of_reach_ = true;
      return true;
    }
  }
  sys::close_descriptor(fd);
  return true;
}

}  // namespace stretto::engine
