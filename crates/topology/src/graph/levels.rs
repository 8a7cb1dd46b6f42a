//! How far above the hosts a switch stands if a file does not say: as many links as to the nearest
//! host.

use std::collections::VecDeque;

use super::{Kind, Link, Vertex};

/// Fills in the levels that are still 0. A switch from which no host can be reached gets level 1.
pub(super) fn derive(vertices: &mut [Vertex], links: &[Link], links_at: &[Vec<usize>]) {
    let mut distance: Vec<Option<u32>> =
        vertices.iter().map(|vertex| (vertex.kind == Kind::Host).then_some(0)).collect();
    let mut open: VecDeque<usize> = (0..vertices.len()).filter(|vertex| distance[*vertex].is_some()).collect();
    while let Some(vertex) = open.pop_front() {
        let next = distance[vertex].map(|distance| distance + 1);
        for link in &links_at[vertex] {
            let other = links[*link].other(vertex);
            if distance[other].is_none() {
                distance[other] = next;
                open.push_back(other);
            }
        }
    }
    for (vertex, distance) in vertices.iter_mut().zip(distance) {
        if vertex.kind == Kind::Switch && vertex.level == 0 {
            vertex.level = distance.unwrap_or(1);
        }
    }
}
