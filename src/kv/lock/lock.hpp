// SPDX-License-Identifier: BSD-3-Clause
// Reader-writer locks in shared memory for one writer and many readers, in the forms of S3 (Efimov,
// Polyakov, Kramarenko, Bochkarev 2020) and others. The writer is a node's agent. The readers are
// its clients. Both may be processes or threads.
//
// For benchmarks alone (bench/kv, `stretto kv bench`): they show what locks cost that a store of
// keys may use. Stretto's own store has no lock between processes (kv/store.hpp). Of this folder it
// uses machine.hpp only.
//
// In memory there are a header, what the scheme shares, and an entry for each client. An entry says
// whose it is and holds the scheme's lines for that client. No two clients write one line, except
// where a scheme is about that. Offsets follow from the number of entries, and there are no
// pointers.
//
// A scheme is one file. It is a template over what it stands on (machine.hpp), with these members,
// in this order:
//
//   kName                 the name it is chosen by (schemes.hpp)
//   Shared, Client        its lines, for all and for each client; create(shared), create(client)
//                         make them
//   enter(lock, client)   the reader of this entry begins a section. Status::peer_gone: the writer
//                         is dead
//   leave(lock, client)   the reader ends it. False: the section saw a change and must run again
//   acquire(lock)         the writer begins a section, and is alone from now on
//   release(lock)         the writer ends it
//   repair(lock, client)  this client is dead, and the writer is inside or waits for this client.
//                         Removes the client's traces: its lines are as if it had never existed
//                         and the writer held them
//
// All schemes keep these promises:
// - A waiting process spins, then yields, then naps. The writer never starves.
// - A client that dies, at any step, holds the writer up for a few milliseconds. Clients only read,
//   so the data stay good.
// - The writer's death ends the lock, because the writer may have left the data half-written. A
//   client that waits or comes then gets peer_gone. A new writer makes a new lock.
//
// Clients must keep a section short, must not block in it, and must not enter it twice. The system
// tells by process id and start time which process is dead. Therefore all processes must be in one
// PID namespace (attach() says if they are not).
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/status.hpp"
#include "kv/lock/machine.hpp"

namespace stretto::kv {

template <template <class> class SchemeOf, class Sync = Machine>
class Lock {
 public:
  using Scheme = SchemeOf<Sync>;
  using Word = typename Sync::Word;
  using Client = typename Scheme::Client;
  using Shared = typename Scheme::Shared;
  static constexpr unsigned kNoClient = ~0u;

  static std::size_t bytes(unsigned clients) { return sizeof(Header) + sizeof(Common) + clients * sizeof(ClientEntry); }

  // ---- the writer ----

  // Makes the lock in memory that nobody reads yet, aligned to shm::kLineBytes.
  void create(void* memory, unsigned clients) {
    place(memory, clients);
    header_ = new (memory) Header;
    header_->clients = clients;
    header_->pid_namespace = Sync::pid_namespace();
    new (common_) Common;
    Scheme::create(common_->shared);
    for (unsigned i = 0; i < clients; ++i) {
      new (&entry(i)) ClientEntry;
      entry(i).owner.store_relaxed(0);
      Scheme::create(entry(i).client);
    }
    header_->wanted.store_relaxed(0);
    header_->writer_priority.store_relaxed(0);
    header_->writer.store_release(Sync::identity());
  }
  void write_enter() {
    Scheme::acquire(*this);
    if (header_->wanted.load_relaxed() != 0) bury_all();
  }
  void write_leave() { Scheme::release(*this); }

  // Frees the entries of clients that have died. The writer calls it when it is idle, or when it
  // learns of a death.
  void reap() {
    write_enter();
    bury_all();
    write_leave();
  }

  // ---- a client ----

  // Joins the lock in this memory, after checking what the writer wrote there. Unavailable: the
  // writer is in another PID namespace.
  Status attach(void* memory, std::size_t size) {
    if (size < sizeof(Header)) return Status::invalid;
    const auto* header = static_cast<const Header*>(memory);
    if (header->clients > kMostClients || bytes(header->clients) > size) return Status::invalid;
    if (header->pid_namespace != Sync::pid_namespace()) return Status::unavailable;
    header_ = static_cast<Header*>(memory);
    place(memory, header->clients);
    return Status::ok;
  }
  // Takes a free entry. If there is none, asks the writer to look for dead clients, and waits for
  // up to `patience_ns`.
  Status join(std::uint64_t patience_ns = 0) {
    registered_ = Sync::barrier_register();
    const std::uint64_t me = Sync::identity();
    const std::uint64_t begin = patience_ns == 0 ? 0 : sys::now_ns();
    const auto too_late = [&] {
      header_->wanted.store_release(1);  // again: a client may have died since the writer last looked
      return patience_ns == 0 || writer_gone() || sys::now_ns() - begin > patience_ns;
    };
    if (take_entry(me)) return Status::ok;
    header_->wanted.store_release(1);
    if (Sync::wait(policy_, [&] { return take_entry(me); }, too_late)) return Status::ok;
    return writer_gone() ? Status::peer_gone : Status::unavailable;
  }
  void leave() {
    entry(index_).owner.store_release(0);  // pairs with the next client's exchange
    index_ = kNoClient;
  }
  [[nodiscard]] unsigned index() const { return index_; }

  Status read_enter() { return Scheme::enter(*this, entry(index_).client); }
  bool read_leave() { return Scheme::leave(*this, entry(index_).client); }
  // Runs `body` inside a section, and again if the scheme says so. `body` must tolerate that. It
  // must read shared data by relaxed loads, and check what it reads before it follows it.
  template <class Body>
  Status read(Body body) {
    for (;;) {
      const Status status = read_enter();
      if (status != Status::ok) return status;
      body();
      if (read_leave()) return Status::ok;
    }
  }

  [[nodiscard]] unsigned clients() const { return clients_; }
  shm::WaitPolicy& policy() { return policy_; }

  // ---- for schemes ----
  Shared& shared() { return common_->shared; }
  Client& client(unsigned i) { return entry(i).client; }
  [[nodiscard]] bool writer_gone() const { return Sync::gone(header_->writer.load_acquire()); }
  // Whether this process must fence for itself, because the writer's barriers do not reach it.
  [[nodiscard]] bool unregistered() const { return !registered_; }
  std::uint64_t& ticket() { return ticket_; }  // of the current section, for optimistic readers
  Word& writer_priority() { return header_->writer_priority; }

  // A client waits for the writer. False: the writer is dead, and done() will never hold.
  template <class Done>
  bool wait_for_writer(Done done) {
    return Sync::wait(policy_, done, [this] { return writer_gone(); });
  }
  // The writer waits for a client. If the client is dead, the writer reclaims its entry, and the
  // client's lines are the writer's.
  template <class Done>
  void wait_for_client(unsigned i, Done done) {
    if (!Sync::wait(policy_, done, [this, i] { return is_dead(i); })) reclaim(i);
  }
  // Only the writer frees a dead client's entry, so a client that it has found dead stays dead.
  // Nobody waits for an empty entry.
  [[nodiscard]] bool is_dead(unsigned i) {
    const std::uint64_t owner = entry(i).owner.load_acquire();
    return owner != 0 && Sync::gone(owner);
  }
  void reclaim(unsigned i) {
    Scheme::repair(*this, client(i));
    entry(i).owner.store_release(0);  // pairs with the exchange in take_entry
  }

 private:
  static constexpr unsigned kMostClients = 1 << 16;

  // The writer writes it at creation and when it must. All read it.
  struct Header {
    std::uint32_t clients;
    std::uint64_t pid_namespace;
    Word writer;
    Word writer_priority;                  // the writer has tried often: clients let it pass (mutexes have no queue)
    alignas(shm::kLineBytes) Word wanted;  // a client has found no entry
  };
  struct alignas(shm::kLineBytes) Common {
    Shared shared;
  };
  struct ClientEntry {
    alignas(shm::kLineBytes) Word owner;  // identity of the process that has this entry; 0: free
    Client client;
  };

  void place(void* memory, unsigned clients) {
    clients_ = clients;
    common_ = reinterpret_cast<Common*>(static_cast<char*>(memory) + sizeof(Header));
    entries_ = reinterpret_cast<ClientEntry*>(common_ + 1);
    policy_.look_every_ns = kLookEveryNs;
    policy_.bare_spins = policy_.spins = Sync::crowded(clients + 1) ? kSpinsCrowded : kSpins;
    policy_.yield_after_ns = 0;
  }
  ClientEntry& entry(unsigned i) { return entries_[i]; }

  bool take_entry(std::uint64_t me) {
    for (unsigned i = 0; i < clients_; ++i) {
      if (entry(i).owner.load_relaxed() == 0 && entry(i).owner.compare_exchange(0, me)) {
        index_ = i;
        return true;
      }
    }
    return false;
  }
  void bury_all() {
    header_->wanted.store_relaxed(0);
    for (unsigned i = 0; i < clients_; ++i) {
      if (is_dead(i)) reclaim(i);
    }
  }

  static constexpr std::uint64_t kLookEveryNs = 10'000'000;  // a dead client is noticed within this time
  // Sections are shorter than this many looks. A process that waits longer waits for one that has
  // lost the processor, perhaps to the waiting process itself.
  static constexpr std::uint32_t kSpins = 200;
  // The same where that is the rule: clients and the writer do not have a processor each.
  static constexpr std::uint32_t kSpinsCrowded = 20;

  Header* header_ = nullptr;
  Common* common_ = nullptr;
  ClientEntry* entries_ = nullptr;
  unsigned clients_ = 0;
  unsigned index_ = kNoClient;
  bool registered_ = false;
  std::uint64_t ticket_ = 0;
  shm::WaitPolicy policy_;
};

}  // namespace stretto::kv
