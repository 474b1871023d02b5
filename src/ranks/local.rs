//! Ranks within one process: a thread for each.

use super::Ranks;
use burn::tensor::Device;
use std::fmt;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What goes from one rank to another.
enum Message {
    Bytes(Vec<u8>),
    Numbers(Vec<f32>),
    /// The sender has given up.
    End,
}

/// A rank that is a thread of this process.
pub struct Local {
    rank: usize,
    /// To each rank.
    to: Vec<Sender<Message>>,
    /// From each rank. Only one thread of a rank speaks at a time.
    from: Vec<Mutex<Receiver<Message>>>,
    /// The devices of all ranks, where those can add up tensors among themselves.
    devices: Option<Vec<Device>>,
}

/// What a thread unwinds with that cannot go on, since another rank has ended: that one says why.
#[derive(Debug)]
pub struct Ended;

/// So many ranks, to be handed to a thread each.
pub fn within_process(size: usize) -> Vec<Local> {
    let (mut to, mut from): (Vec<Vec<_>>, Vec<Vec<_>>) =
        ((0..size).map(|_| Vec::new()).collect(), (0..size).map(|_| Vec::new()).collect());
    for to in &mut to {
        for from in &mut from {
            let (sender, receiver) = channel();
            to.push(sender);
            from.push(Mutex::new(receiver));
        }
    }
    to.into_iter().zip(from).enumerate().map(|(rank, (to, from))| Local { rank, to, from, devices: None }).collect()
}

impl Local {
    /// With the devices of all ranks, which burn's all-reduce knows.
    #[must_use]
    pub fn with_devices(self, devices: Vec<Device>) -> Self {
        Self { devices: Some(devices), ..self }
    }

    fn send(&self, rank: usize, message: Message) {
        // A rank that has ended shows when it is listened to.
        let _ = self.to[rank].send(message);
    }

    /// What comes from a rank. Where that one has ended or given up, this thread unwinds without a word.
    fn receive(&self, rank: usize) -> Message {
        let received = self.from[rank].lock().expect("nobody panics with the lock").recv();
        match received {
            Ok(Message::End) | Err(_) => std::panic::resume_unwind(Box::new(Ended)),
            Ok(message) => message,
        }
    }

    fn receive_numbers(&self, rank: usize) -> Vec<f32> {
        match self.receive(rank) {
            Message::Numbers(numbers) => numbers,
            _ => unreachable!("all ranks make the same calls in the same order"),
        }
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank, self.to.len())
    }
}

impl Ranks for Local {
    fn devices(&self) -> Option<&[Device]> {
        self.devices.as_deref()
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn exchange(&self, own: &[u8]) -> Vec<Vec<u8>> {
        (0..self.size()).for_each(|rank| self.send(rank, Message::Bytes(own.to_vec())));
        let receive = |rank| match self.receive(rank) {
            Message::Bytes(bytes) => bytes,
            _ => unreachable!("all ranks make the same calls in the same order"),
        };
        (0..self.size()).map(receive).collect()
    }

    fn scatter(&self, to: &[&[f32]], _lens: &[usize]) -> Vec<Vec<f32>> {
        to.iter().enumerate().for_each(|(rank, numbers)| self.send(rank, Message::Numbers(numbers.to_vec())));
        (0..self.size()).map(|rank| self.receive_numbers(rank)).collect()
    }

    fn gather(&self, own: &[f32], _lens: &[usize]) -> Vec<f32> {
        (0..self.size()).for_each(|rank| self.send(rank, Message::Numbers(own.to_vec())));
        (0..self.size()).flat_map(|rank| self.receive_numbers(rank)).collect()
    }

    fn give_up(&self) {
        (0..self.size()).filter(|rank| *rank != self.rank).for_each(|rank| self.send(rank, Message::End));
    }
}
